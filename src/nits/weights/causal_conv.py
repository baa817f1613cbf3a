"""NITS-CONV's weight model: a causal convolutional network in the shape of PixelCNN++.

Columns are the channels of pixels, in reading order: rows, pixels of a row, channels of a pixel. θ of a
channel depends on the pixels before, through two streams of gated residual blocks, and on the channels
before it of its own pixel, through a small layer at the end. Both, and the four neighbours before, also have
a straight way to θ: an image is close to a straight line through them, and that need not wait for the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.weights.causal_layers import Across, Down, Gated, Pointwise, both_signs, gate
from nits.weights.weight_model import WeightModel


class ConvSize(NamedTuple):
    """The size of a `CausalConv`.

    filters: Features of each stream.
    blocks: Residual blocks of each stream; the second half of them reads what the first half put out.
    dilations: Distances at which the blocks look, in turn.
    dropout: Probability of dropping a feature inside a block.
    """

    filters: int = 48
    blocks: int = 6
    dilations: tuple[int, ...] = (1, 2, 4)
    dropout: float = 0.0


CACHE_BYTES = 2**29
"""How much memory the caches of images that are sampled together may take."""

SIZES = {
    "tiny": ConvSize(24, 4, (1, 2)),
    "small": ConvSize(),
    "paper-bsds300": ConvSize(98, 6),
    "paper-cifar10": ConvSize(156, 33, dropout=0.5),
}
"""Sizes by name: two for CPUs, and two with as many weights as the paper's models, 3.8 and 53 million."""


class CausalConv(WeightModel):
    """Gated residual blocks at full resolution, with dilations in turn in place of down-sampling.

    Weights start at 1/√fan-in, and each block close to the identity: no normalization is needed to train.

    inputs, outputs, context: See `WeightModel`; all columns alike.
    shape: Channels, height and width of the images.
    size: Width, depth and dropout; a size that two CPU cores can train by default.
    present: Which pixels there are, shape (H, W); all by default. Columns exist for those only.
    """

    present: Tensor

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        context: int = 0,
        *,
        shape: tuple[int, int, int],
        size: ConvSize | None = None,
        present: Tensor | None = None,
    ) -> None:
        super().__init__(inputs, outputs, context)
        filters, blocks, dilations, self.dropout = size or ConvSize()
        self.shape = shape
        there = torch.ones(shape[1:], dtype=torch.bool) if present is None else present.bool()
        self.register_buffer("present", there, persistent=False)
        read = shape[0] * self.inputs[0] + 1  # the channels' features, and whether the pixel is there
        self.first_down = Down(read, filters)
        self.first_left = Across(read, filters)
        self.above = Down(read, filters)
        turns = [dilations[k % len(dilations)] for k in range(blocks)]
        self.shortcuts = [blocks - 1 - k if 2 * k >= blocks else None for k in range(blocks)]
        sides = [context + (0 if earlier is None else 2 * filters) for earlier in self.shortcuts]
        pairs = list(zip(turns, sides, strict=True))
        self.down = nn.ModuleList(Gated(Down, filters, d, side) for d, side in pairs)
        self.across = nn.ModuleList(Gated(Across, filters, d, 2 * filters + side) for d, side in pairs)
        self.mix = Pointwise(2 * filters, shape[0] * filters)
        self.channels = nn.ModuleList(Pointwise(c * self.inputs[0], filters) for c in range(1, shape[0]))
        self.last_weight = nn.Parameter(
            torch.randn(shape[0], self.outputs[0], 2 * filters) * 0.5 / (2 * filters) ** 0.5
        )
        near = [(4 * shape[0] + c) * self.inputs[0] for c in range(shape[0])]
        self.direct = nn.ParameterList(torch.randn(self.outputs[0], n) * 0.1 / n**0.5 for n in near)
        self.last_bias = nn.Parameter(torch.zeros(sum(self.outputs)))
        cached = 4 * (8 * blocks * filters + read) * shape[1] * shape[2]  # bytes per image
        self.sampled_at_once = max(16, CACHE_BYTES // cached)

    def planes(self, features: Tensor) -> Tensor:
        """Returns features, shape (D f, N), as images, (N, C f + 1, H, W), zero where no pixel is."""
        c, height, width = self.shape
        per_pixel = features.view(-1, c * self.inputs[0], features.shape[-1])  # (pixels, C f, N)
        whole = features.new_zeros(height * width, c * self.inputs[0] + 1, features.shape[-1])
        there = self.present.flatten()
        whole[there, :-1] = per_pixel
        whole[there, -1] = 1
        planes = whole.view(height, width, -1, features.shape[-1]).permute(3, 2, 0, 1)
        return planes.contiguous(memory_format=torch.channels_last)  # which convolutions are quickest in

    def streams(self, x: Tensor, side: Tensor | None) -> Tensor:
        """Runs both streams over (N, C f + 1, H, W); returns both signs of the second, (N, 2F, H, W)."""
        u = shifted_down(self.first_down(x))
        v = shifted_down(self.above(x)) + shifted_right(self.first_left(x))
        us: list[Tensor] = []
        vs: list[Tensor] = []
        for down, across, earlier in zip(self.down, self.across, self.shortcuts, strict=True):
            u = down(u, beside(at(us, earlier), side), self.dropout)
            us.append(both_signs(u))
            v = across(v, beside(us[-1], at(vs, earlier), side), self.dropout)
            vs.append(both_signs(v))
        return vs[-1] if vs else both_signs(v)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, shape (Σ outputs, N)."""
        x = self.planes(features)
        side = None if context is None else context.t()[:, :, None, None].expand(-1, -1, *self.shape[1:])
        mixed = self.mix(self.streams(x, side)).chunk(self.shape[0], 1)
        pixels = [self._pixels(self._with_channels(c, h, x)) for c, h in enumerate(mixed)]
        near = self._pixels(torch.cat([*neighbours(x[:, :-1]), x[:, :-1]], 1))
        parts = [self.theta_of(c, h, near) for c, h in enumerate(pixels)]
        theta = torch.stack(parts, 1).flatten(0, 2)  # (pixels, C, P, N) → (D P, N)
        return theta + self.last_bias.unsqueeze(1)

    def _with_channels(self, c: int, h: Tensor, x: Tensor) -> Tensor:
        """Adds what the channels before c of the same pixel say."""
        return h if c == 0 else h + self.channels[c - 1](x[:, : c * self.inputs[0]])

    def _pixels(self, h: Tensor) -> Tensor:
        """Returns (N, F, H, W) as (pixels, F, N), those pixels only that are there."""
        return h.permute(2, 3, 1, 0).flatten(0, 1)[self.present.flatten()]

    def theta_of(self, c: int, h: Tensor, near: Tensor) -> Tensor:
        """Maps features of channel c, shape (…, F, N), to its weights less their bias, shape (…, P, N).

        near: What the neighbours and then the pixel's own channels are, shape (…, 5 C f, N).
        """
        both = functional.elu(torch.cat([h, -h], -2))
        direct: Tensor = self.direct[c]
        return self.last_weight[c] @ both + direct @ near[..., : direct.shape[1], :]

    def stepper(self, n: int, context: Tensor | None = None) -> ConvStepper:
        """Starts the evaluation of n images pixel by pixel, at the cost of about one forward pass in all."""
        return ConvStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output a constant per column; its weights are free to grow from zero."""
        with torch.no_grad():
            for weight in (self.last_weight, *self.direct):
                weight.zero_()
            self.last_bias.copy_(theta)


def gated(blocks: nn.ModuleList) -> Iterator[Gated]:
    """Yields the blocks, known for what they are."""
    return (block for block in blocks if isinstance(block, Gated))


def neighbours(x: Tensor) -> list[Tensor]:
    """Returns images moved by one pixel: the neighbours to the left, above left, above, above right."""
    left, right = shifted_right(x), functional.pad(x[:, :, :, 1:], (0, 1))
    return [left, shifted_down(left), shifted_down(x), shifted_down(right)]


def shifted_down(x: Tensor) -> Tensor:
    """Moves images one row down; the first row is zero."""
    return functional.pad(x[:, :, :-1], (0, 0, 1, 0))


def shifted_right(x: Tensor) -> Tensor:
    """Moves images one pixel to the right; the first column is zero."""
    return functional.pad(x[:, :, :, :-1], (1, 0))


def at(outputs: list[Tensor], earlier: int | None) -> Tensor | None:
    """Returns what an earlier block put out, if a shortcut leads from there."""
    return None if earlier is None else outputs[earlier]


def beside(*parts: Tensor | None) -> Tensor | None:
    """Returns those features side by side that there are."""
    there = [part for part in parts if part is not None]
    return torch.cat(there, 1) if there else None


class ConvStepper:
    """The network fed one channel of one pixel at a time: each layer is evaluated once at each place."""

    def __init__(self, model: CausalConv, n: int, context: Tensor | None) -> None:
        self.model, self.n = model, n
        channels, height, width = model.shape
        like = model.last_bias
        self.x = like.new_zeros(n, channels * model.inputs[0] + 1, height, width)
        self.x[:, -1] = model.present.to(like)
        self.side = None if context is None else context.t()
        filters = model.mix.weight.shape[1] // 2
        blocks = len(model.down)
        # What the two convolutions of each block read, in each stream.
        self.read = {
            name: [[like.new_zeros(n, 2 * filters, height, width) for _ in range(2)] for _ in range(blocks)]
            for name in ("down", "across")
        }
        self.rows: list[Tensor] = []  # of the down stream, both signs, per block: (n, 2F, W)
        self.column = 0
        self.place = (-1, width - 1)
        self._advance()

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        c, f = self.column % self.model.shape[0], self.model.inputs[0]
        i, j = self.place
        h = self.mixed[c]
        if c:
            h = h + self.model.channels[c - 1](self.x[:, : c * f, i, j])
        width = self.model.outputs[0]
        bias = self.model.last_bias[self.column * width : (self.column + 1) * width]
        return self.model.theta_of(c, h.t(), self._near(i, j).t()) + bias.unsqueeze(1)

    def _near(self, i: int, j: int) -> Tensor:
        """Returns what the neighbours of a pixel and its own channels so far are, shape (N, 5 C f)."""
        x, none = self.x[:, :-1], self.x.new_zeros(self.n, self.x.shape[1] - 1)
        width = self.model.shape[2]
        places = ((i, j - 1), (i - 1, j - 1), (i - 1, j), (i - 1, j + 1), (i, j))
        found = [x[:, :, a, b] if a >= 0 and 0 <= b < width else none for a, b in places]
        return torch.cat(found, 1)

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        c, f = self.column % self.model.shape[0], self.model.inputs[0]
        i, j = self.place
        self.x[:, c * f : (c + 1) * f, i, j] = features.t()
        self.column += 1
        if self.column % self.model.shape[0] == 0 and self.column < len(self.model.inputs):
            self._advance()

    def _advance(self) -> None:
        """Goes on to the next pixel that is there; others are evaluated too, for their neighbours."""
        width = self.model.shape[2]
        while True:
            i, j = divmod(self.place[0] * width + self.place[1] + 1, width)
            self.place = (i, j)
            if j == 0:
                self._row(i)
            self._pixel(i, j)
            if self.model.present[i, j]:
                return

    def _row(self, i: int) -> None:
        """Evaluates row i of the down stream, which the rows above decide."""
        model, width = self.model, self.model.shape[2]
        side = None if self.side is None else self.side[:, :, None].expand(-1, -1, width)
        if i == 0:
            u = self.x.new_zeros(self.n, model.first_down.weight.shape[0], width)
            self.above = u
        else:
            u, self.above = model.first_down.row(self.x, i - 1), model.above.row(self.x, i - 1)
        self.rows = []
        blocks = zip(gated(model.down), self.read["down"], model.shortcuts, strict=True)
        for block, (first, second), earlier in blocks:
            first[:, :, i] = both_signs(u)
            beyond = beside(at(self.rows, earlier), side)
            second[:, :, i] = block.between(block.first.row(first, i), beyond)
            u = gate(u, block.second.row(second, i))
            self.rows.append(both_signs(u))

    def _pixel(self, i: int, j: int) -> None:
        """Evaluates pixel (i, j) of the across stream."""
        model = self.model
        v = self.above[:, :, j]
        if j:
            v = v + model.first_left.pixel(self.x, i, j - 1)
        done: list[Tensor] = []
        blocks = zip(gated(model.across), self.read["across"], self.rows, model.shortcuts, strict=True)
        for block, (first, second), row, earlier in blocks:
            first[:, :, i, j] = both_signs(v)
            side = beside(row[:, :, j], at(done, earlier), self.side)
            second[:, :, i, j] = block.between(block.first.pixel(first, i, j), side)
            v = gate(v, block.second.pixel(second, i, j))
            done.append(both_signs(v))
        self.mixed = model.mix(both_signs(v)).chunk(model.shape[0], 1)
