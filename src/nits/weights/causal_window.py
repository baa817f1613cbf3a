"""A weight model of images: one small network for all pixels, which reads a window before each.

It is a causal convolution as wide as the window, followed by residual blocks of single pixels, so
nearly all of its work is a few large matrix products. What it reads, and what it returns, are
counted from a linear prediction r of the pixel and in units of the local scale s: see
`local_scale`. Smooth and rough places of images then look alike to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits import kernels
from nits.heads.head import Head, PNNHead
from nits.pnn import initial
from nits.pnn.plain import log_weights
from nits.pnn.random import Seeded, seeded
from nits.weights.block_linear import dropout
from nits.weights.local_scale import LocalScale, Seen, squashed
from nits.weights.weight_model import Read, WeightModel
from nits.weights.window_stepper import WindowStepper


class WindowSize(NamedTuple):
    """The size of a `CausalWindow`.

    reach: How many rows above a pixel, and pixels to each side, are read.
    hidden, blocks: Width and number of residual blocks.
    dropout: Probability of dropping a feature inside a block.

    >>> import nits
    >>> model = nits.NITSImages(size=nits.weights.WindowSize(reach=3, hidden=64, blocks=1))
    """

    reach: int = 4
    hidden: int = 192
    blocks: int = 2
    dropout: float = 0.0

    @property
    def network(self) -> Any:
        """The weight model that has such a size: `CausalWindow`."""
        return CausalWindow

    @property
    def rate(self) -> float:
        """The learning rate for which it is made."""
        return RATE


RATE = 3e-3

STARTED_FROM = 1_000_000
"""Values of training images that predictions and the initial PNN are fitted to."""

SAMPLED_BYTES = 2**28
"""Memory for the windows of all images that are sampled together."""

SMALL = 0.1
"""Gain of the layers from which training starts close to a constant."""


class CausalWindow(WeightModel):
    """Residual blocks on a window of the pixels before, the same for every pixel.

    θ of the channels of a pixel depends on the window, and on the earlier channels of the pixel.

    inputs, outputs, context: See `WeightModel`; all columns alike.
    shape: Channels, height and width of the images.
    size: Reach, width, depth and dropout.
    present: Mask of the pixels that have columns, shape (H, W); all by default.
    units: Units of the PNN's first layer, which follow r and s; 0 for heads without a PNN.
    generator: What initial weights are drawn from, or its seed; by default torch's global one.

    >>> import nits
    >>> head, size = nits.heads.Quantized(0.0, 1.0, 16), nits.weights.WindowSize(2, 16, 1)
    >>> nits.NITS.conv((1, 4, 4), head, size=size).columns
    16
    """

    lowers = True

    rows: Tensor
    columns: Tensor

    def __init__(  # noqa: PLR0913 - what the data decide, and what the user does
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        context: int = 0,
        *,
        shape: tuple[int, int, int],
        size: WindowSize | None = None,
        present: Tensor | None = None,
        units: int = 0,
        generator: Seeded = None,
    ) -> None:
        super().__init__(inputs, outputs, context)
        source = seeded(generator)
        self.shape, self.size, self.units = shape, size or WindowSize(), units
        reach, hidden, blocks, self.dropout = self.size
        there = torch.ones(shape[1:], dtype=torch.bool) if present is None else present.bool()
        self.local = LocalScale(shape[0], there, reach)
        for name, place in zip(("rows", "columns"), there.nonzero().t(), strict=True):
            self.register_buffer(name, place, persistent=False)
        read = self.local.read
        self.first = _normal(hidden, read, 1.0, source)
        self.by_row = nn.Parameter(torch.zeros(hidden, shape[1]))
        self.by_column = nn.Parameter(torch.zeros(hidden, shape[2]))
        self.given = _normal(hidden, context, 1.0, source)
        gains = [1.0, SMALL] * blocks  # each block starts close to the identity
        self.inner = nn.ParameterList(_normal(hidden, hidden, gain, source) for gain in gains)
        self.shifts = nn.Parameter(torch.zeros(2 * blocks, hidden, 1))
        before = [2 * c for c in range(shape[0])]  # numbers of the earlier channels of a pixel
        self.before = nn.ParameterList(_normal(hidden, n, 1.0, source) for n in before)
        self.last = nn.ParameterList(
            _normal(self.outputs[0], hidden, SMALL, source) for _ in before
        )
        self.bias = nn.Parameter(torch.zeros(len(self.rows), shape[0], self.outputs[0]))
        pixel = 4 * (read + 4 * hidden + shape[0] * self.outputs[0])  # bytes
        kept = 4 * (shape[0] + 1) * shape[1] * shape[2]
        self.sampled_at_once = max(16, SAMPLED_BYTES // (pixel + kept))

    def sizes(self) -> dict[str, Any]:
        """Returns the arguments other than inputs, outputs, context and units, for a file."""
        present = torch.zeros(self.shape[1:], dtype=torch.bool)
        present[self.rows, self.columns] = True
        return {"shape": list(self.shape), "size": list(self.size), "present": present.tolist()}

    def values(self, features: Tensor) -> Tensor:
        """Returns the first feature of each channel, shape (C, pixels, N), of (Σ inputs, N)."""
        pixels = features.view(len(self.rows), self.shape[0], self.inputs[0], -1)
        return pixels[:, :, 0].transpose(0, 1)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N).

        Under `torch.autocast` the residual blocks have its precision, and all else the weights'.
        """
        own, every = self.values(features), slice(None)
        with kernels.full_precision(own.device):
            seen = self.local.seen(own)
        h = self.trunk(seen, every, context)
        with kernels.full_precision(own.device):
            h = h.to(own.dtype)
            parts = [self.theta(c, h, seen, own, every) for c in range(self.shape[0])]
        return torch.stack(parts, 1).flatten(0, 2)  # (pixels, C, P, N) → (D P, N)

    def trunk(self, seen: Seen, pixels: slice, context: Tensor | None) -> Tensor:
        """Returns the features of pixels that all their channels share, shape (H, pixels, N)."""
        x = self.local.window(seen, pixels)
        place = self.by_row[:, self.rows[pixels]] + self.by_column[:, self.columns[pixels]]
        h = (self.first @ x.flatten(1)).view(-1, *x.shape[1:]) + place.unsqueeze(2)
        if context is not None:
            h = h + (self.given @ context).unsqueeze(1)
        h = h.flatten(1)
        for k in range(0, len(self.inner), 2):
            inside = torch.addmm(self.shifts[k], self.inner[k], functional.silu(h))
            inside = functional.silu(inside)
            inside = dropout(inside, self.dropout, self.training, self.generator)
            h = h + torch.addmm(self.shifts[k + 1], self.inner[k + 1], inside)
        return h.view(-1, *x.shape[1:])

    def theta(self, c: int, h: Tensor, seen: Seen, own: Tensor, pixels: slice) -> Tensor:
        """Returns the weights of channel c of pixels, shape (pixels, P, N).

        own: The channels of these pixels, of which those before c are read, shape (C, pixels, N).
        """
        errors = self.local.errors(seen, own)[:c]
        if c:
            known = torch.cat([squashed(errors), own[:c]])
            h = h + (self.before[c] @ known.flatten(1)).view_as(h)
        found = (self.last[c] @ functional.silu(h).flatten(1)).view(-1, *h.shape[1:])
        theta = found.transpose(0, 1) + self.bias[pixels, c].unsqueeze(2)
        return self._placed(c, theta, seen, errors) if self.units else theta

    def _placed(self, c: int, theta: Tensor, seen: Seen, errors: Tensor) -> Tensor:
        """Returns θ with slopes W / s and centres r + s β / W, equation (45)."""
        slopes, offsets, rest = theta.split(
            [self.units, self.units, theta.shape[-2] - 2 * self.units], -2
        )
        guess, log_scale = self.local.placing(c, seen, errors)
        centres = guess + offsets * torch.exp(log_scale - log_weights(slopes))
        return torch.cat([slopes + log_scale, centres, rest], -2)

    def stepper(self, n: int, context: Tensor | None = None) -> WindowStepper:
        """Starts the evaluation of n images pixel by pixel; it costs about one forward pass."""
        return WindowStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta whatever the input: the last layers get zero weights."""
        with torch.no_grad():
            for weight in self.last:
                weight.zero_()
            self.local.forget()
            self._start(theta.view_as(self.bias))

    def _start(self, theta: Tensor) -> None:
        """Sets the biases by which the output is theta, if r is 0 and s is 1."""
        slopes, centres, rest = theta.split(
            [self.units, self.units, theta.shape[-1] - 2 * self.units], -1
        )
        offsets = centres * torch.exp(log_weights(slopes))
        self.bias.copy_(torch.cat([slopes, offsets, rest], -1))

    def start_from(
        self, heads: Sequence[Head], columns: Tensor, read: Read, context: Tensor | None = None
    ) -> None:
        """Starts from predictions and local scales; without units, as independent columns."""
        if not isinstance(heads[0], PNNHead) or not self.units or torch.isnan(columns).any():
            return super().start_from(heads, columns, read)
        head, some = heads[0], columns[:, :: max(1, columns.numel() // STARTED_FROM)]
        low, high = columns.new_tensor([head.low, head.high])
        points = torch.stack(head.points(some, low, high)).mean(0)
        own = self.values(read(some))
        points = points.view(len(self.rows), self.shape[0], -1).transpose(0, 1)
        theta = []
        with torch.no_grad():
            self.start_at(self.bias.flatten())
            self.local.start_from(own, points)
            seen = self.local.seen(own)
            errors = self.local.errors(seen, own)
            for c in range(self.shape[0]):
                guess, log_scale = self.local.placing(c, seen, errors[:c])
                y = (points[c] - guess.squeeze(1)) * torch.exp(-log_scale.squeeze(1))
                theta.append(initial.from_quantiles(y.flatten(), head.hidden))
            self._start(torch.stack(theta).expand(len(self.bias), -1, -1))


def _normal(rows: int, columns: int, gain: float, source: torch.Generator | None) -> nn.Parameter:
    """Returns a matrix with which inputs of variance 1 give outputs of variance gain²."""
    drawn = torch.randn(rows, columns, generator=source)
    return nn.Parameter(drawn * (gain / max(columns, 1) ** 0.5))
