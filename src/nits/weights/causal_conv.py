"""NITS-CONV's weight model: a causal convolutional network in the shape of PixelCNN++.

Columns are the channels of pixels in raster order: row by row, pixel by pixel, channel by channel.
θ of a channel depends on the pixels before, through two streams of gated residual blocks, and on
the earlier channels of its own pixel, through a small layer at the end. These channels and the four
neighbours before the pixel also enter θ linearly: a pixel is close to a linear function of them,
which is learned before the blocks are. `causal_layers` has the convolutions, `causal_theta` what
follows them, `causal_stepper` the evaluation pixel by pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nits import kernels
from nits.heads.head import Head, PNNHead
from nits.pnn.random import Seeded, seeded
from nits.weights import causal_native
from nits.weights.causal_layers import (
    Across,
    Down,
    Gated,
    at,
    both_signs,
    gated,
    neighbours,
    shifted_down,
    shifted_right,
)
from nits.weights.causal_pairs import Pair, again
from nits.weights.causal_stepper import ConvStepper
from nits.weights.causal_theta import PixelTheta
from nits.weights.weight_model import Read, WeightModel


class ConvSize(NamedTuple):
    """The size of a `CausalConv`.

    filters: Features of each stream.
    blocks: Residual blocks of each stream; the second half of them also reads the outputs of the
        first half.
    dilations: Dilations of the blocks' convolutions, which the blocks take in turn.
    dropout: Probability of dropping a feature inside a block.

    >>> import nits
    >>> model = nits.NITSImages(size=nits.weights.ConvSize(filters=16, blocks=2, dilations=(1, 2)))
    """

    filters: int = 48
    blocks: int = 6
    dilations: tuple[int, ...] = (1, 2, 4)
    dropout: float = 0.0

    @property
    def network(self) -> Any:
        """The weight model that has such a size: `CausalConv`."""
        return CausalConv

    @property
    def rate(self) -> float:
        """The learning rate for which it is made."""
        return RATE_TIMES_FILTERS / self.filters


RATE_TIMES_FILTERS = 0.16

STARTED_FROM = 1_000_000
"""Values of training images that the initial linear prediction is fitted to."""

CACHE_BYTES = 2**29
"""Memory for the caches of all images that are sampled together."""

"""Sizes by name: two for CPUs, and two with as many weights as the paper's models, 3.8 and 53
million."""


class CausalConv(WeightModel):
    """Gated residual blocks at full resolution, with dilations in place of down-sampling.

    Weights start at 1/√fan-in and each block close to the identity, so that training needs no
    normalization. With `recompute` set to True, training keeps one pair of features per block and
    computes the others again for the gradient: less memory, a third more work.

    inputs, outputs, context: See `WeightModel`; all columns alike.
    shape: Channels, height and width of the images.
    size: Width, depth and dropout; by default a size that two CPU cores can train.
    present: Mask of the pixels that have columns, shape (H, W); all by default.
    units: See `PixelTheta`.
    generator: What initial weights are drawn from, or its seed; by default torch's global one.

    >>> import nits
    >>> head, tiny = nits.heads.Quantized(0.0, 1.0, 16), nits.weights.SIZES["tiny"]
    >>> sizes = [head.inputs] * 16, [head.weights] * 16
    >>> net = nits.weights.CausalConv(*sizes, shape=(1, 4, 4), size=tiny, units=head.units)
    >>> nits.NITS([head] * 16, net).columns  # what nits.NITS.conv makes
    16
    """

    lowers = True

    present: Tensor

    def __init__(  # noqa: PLR0913 - what the data decide, and what the user does
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        context: int = 0,
        *,
        shape: tuple[int, int, int],
        size: ConvSize | None = None,
        present: Tensor | None = None,
        units: int = 0,
        generator: Seeded = None,
    ) -> None:
        super().__init__(inputs, outputs, context)
        source = seeded(generator)
        self.size = size or ConvSize()
        filters, blocks, dilations, self.dropout = self.size
        self.shape = shape
        self.recompute = False
        there = torch.ones(shape[1:], dtype=torch.bool) if present is None else present.bool()
        self.complete = present is None or bool(there.all())
        self.register_buffer("present", there, persistent=False)
        read = shape[0] * self.inputs[0] + 1  # features of the channels, and the mask `present`
        self.first_down = Down(read, filters, generator=source)
        self.first_left = Across(read, filters, generator=source)
        self.above = Down(read, filters, generator=source)
        turns = [dilations[k % len(dilations)] for k in range(blocks)]
        self.shortcuts = [blocks - 1 - k if 2 * k >= blocks else None for k in range(blocks)]
        sides = [context + (0 if earlier is None else 2 * filters) for earlier in self.shortcuts]
        pairs = list(zip(turns, sides, strict=True))
        self.down = nn.ModuleList(Gated(Down, filters, d, side, source) for d, side in pairs)
        self.across = nn.ModuleList(
            Gated(Across, filters, d, 2 * filters + side, source) for d, side in pairs
        )
        pixels = len(self.inputs) // shape[0]
        self.theta = PixelTheta(
            shape[0], self.inputs[0], self.outputs[0], filters, pixels, units, source
        )
        cached = 4 * (8 * blocks * filters + read) * shape[1] * shape[2]  # bytes per image
        self.sampled_at_once = max(16, CACHE_BYTES // cached)

    def sizes(self) -> dict[str, Any]:
        """Returns the arguments other than inputs, outputs, context and units, for a file."""
        return {
            "shape": list(self.shape),
            "size": list(self.size),
            "present": self.present.tolist(),
        }

    def planes(self, features: Tensor) -> Tensor:
        """Returns features, shape (D f, N), as images, (N, C f + 1, H, W), with 0 for no pixel."""
        c, height, width = self.shape
        per_pixel = features.view(-1, c * self.inputs[0], features.shape[-1])  # (pixels, C f, N)
        flags = per_pixel.new_ones(len(per_pixel), 1, features.shape[-1])
        whole = torch.cat([per_pixel, flags], 1)
        if not self.complete:
            there, present = self.present.flatten(), whole
            whole = features.new_zeros(height * width, *present.shape[1:])
            whole[there] = present
        planes = whole.view(height, width, -1, features.shape[-1]).permute(3, 2, 0, 1)
        # Convolutions are fastest in this layout.
        return planes.contiguous(memory_format=torch.channels_last)

    def streams(self, x: Tensor, side: Tensor | None) -> Tensor:
        """Returns elu(±v), shape (N, 2F, H, W), of the second stream v at x, (N, C f + 1, H, W)."""
        u = shifted_down(self.first_down(x))
        v = shifted_down(self.above(x)) + shifted_right(self.first_left(x))
        us: list[Tensor] = []
        vs: list[Tensor] = []
        blocks = zip(gated(self.down), gated(self.across), self.shortcuts, strict=True)
        for down, across, earlier in blocks:
            pair = Pair(down, across, self.dropout, self.generator)
            given = u, v, at(us, earlier), at(vs, earlier), side
            u, v = again(pair, *given) if self.recompute else pair(*given)
            us.append(u)
            vs.append(v)
        return both_signs(v)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N).

        Under `torch.autocast` the streams have its precision, and what follows them the weights'.
        """
        x = self.planes(features)
        if not self.recompute and kernels.trunk(x):
            given = None if context is None else context.t()
            return causal_native.theta(self, x.permute(0, 2, 3, 1), given)
        side = (
            None
            if context is None
            else context.t()[:, :, None, None].expand(-1, -1, *self.shape[1:])
        )
        streams = self.streams(x, side)
        with kernels.full_precision(x.device):
            return self._last(streams.to(x.dtype), x)

    def _last(self, streams: Tensor, x: Tensor) -> Tensor:
        """Maps the streams' output and images to weights, shape (Σ outputs, N)."""
        mixed = self.theta.mix(streams).chunk(self.shape[0], 1)
        pixels = [self._pixels(self._with_channels(c, h, x)) for c, h in enumerate(mixed)]
        near = self._near(x)
        parts = [self.theta(c, h, near, self.theta.bias[:, c]) for c, h in enumerate(pixels)]
        return torch.stack(parts, 1).flatten(0, 2)  # (pixels, C, P, N) → (D P, N)

    def _with_channels(self, c: int, h: Tensor, x: Tensor) -> Tensor:
        """Adds a linear map of the channels before c of the same pixel."""
        return h if c == 0 else h + self.theta.before[c - 1](x[:, : c * self.inputs[0]])

    def _near(self, x: Tensor) -> Tensor:
        """Returns each pixel's four neighbours before it, their masks, and its own channels."""
        return self._pixels(torch.cat([*neighbours(x), x[:, :-1]], 1))

    def _pixels(self, h: Tensor) -> Tensor:
        """Returns (N, F, H, W) as (pixels, F, N), for the pixels that have columns."""
        pixels = h.permute(2, 3, 1, 0).flatten(0, 1)
        return pixels if self.complete else pixels[self.present.flatten()]

    def stepper(self, n: int, context: Tensor | None = None) -> ConvStepper:
        """Starts the evaluation of n images pixel by pixel; it costs about one forward pass."""
        return ConvStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta whatever the input: the last layer gets zero weights."""
        self.theta.start_at(theta.view_as(self.theta.bias))

    def start_from(
        self, heads: Sequence[Head], columns: Tensor, read: Read, context: Tensor | None = None
    ) -> None:
        """Starts from a linear prediction of each pixel; without units, as independent columns."""
        if not isinstance(heads[0], PNNHead) or not self.theta.units or torch.isnan(columns).any():
            return super().start_from(heads, columns, read)
        head, some = heads[0], columns[:, :: max(1, columns.numel() // STARTED_FROM)]
        low, high = columns.new_tensor([head.low, head.high])
        middle = torch.stack(head.points(some, low, high)).mean(0)
        near = self._near(self.planes(read(some)))
        self.theta.start_from(middle.unflatten(0, (-1, self.shape[0])), near, head.hidden)
