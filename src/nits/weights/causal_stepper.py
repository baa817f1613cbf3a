"""NITS-CONV evaluated one channel of one pixel at a time, as sampling needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from nits.weights.causal_layers import Across, Down, Gated, at, both_signs, gate, gated

if TYPE_CHECKING:
    from nits.weights.causal_conv import CausalConv


class Cache:
    """The rows that a convolution still reads, with margins of zeros, and its weights as a matrix.

    The features of a pixel lie side by side, and so do the weights that they meet.

    seen: Row i is seen[:, i % (dilation + 1)]; shape (n, dilation + 1, width + margins, inputs).
    """

    def __init__(self, layer: Down | Across, n: int, width: int) -> None:
        self.dilation, self.width = layer.dilation, width
        self.margins = layer.weight.shape[3] - 1  # on the left, and for Down on the right as well
        outputs, inputs = layer.weight.shape[:2]
        d = self.dilation
        self.seen = layer.weight.new_zeros(n, d + 1, width + self.margins * d, inputs)
        self.weight = layer.weight.detach().permute(2, 3, 1, 0).reshape(-1, outputs)
        self.bias = layer.bias.detach()

    def clear(self, i: int) -> None:
        """Makes row i zero, for pixels that are not there."""
        self.seen[:, i % (self.dilation + 1)] = 0

    def put_row(self, i: int, features: Tensor) -> None:
        """Takes row i of the input, shape (n, width, inputs)."""
        d = self.dilation
        self.seen[:, i % (d + 1), d : d + self.width] = features

    def put(self, i: int, j: int, features: Tensor) -> None:
        """Takes pixel (i, j) of the input, shape (n, inputs)."""
        self.seen[:, i % (self.dilation + 1), j + self.dilation] = features

    def _rows(self, i: int, columns: slice) -> Tensor:
        """Returns columns of the row `dilation` above and of row i, shape (n, 2, ·, inputs)."""
        size = self.dilation + 1
        # The row above is the oldest, which the next row replaces.
        above, here = self.seen[:, (i + 1) % size], self.seen[:, i % size]
        return torch.stack([above[:, columns], here[:, columns]], 1)

    def row(self, i: int, plus: Tensor | None = None) -> Tensor:
        """Returns row i of a `Down`, shape (n, width, outputs), plus something or the bias."""
        d = self.dilation
        rows = self._rows(i, slice(None)).unfold(2, self.margins * d + 1, 1)[..., ::d]
        taps = rows.permute(0, 2, 1, 4, 3).reshape(-1, len(self.weight))
        added = self.bias if plus is None else plus.flatten(0, 1)
        return torch.addmm(added, taps, self.weight).view(-1, self.width, self.weight.shape[1])

    def pixel(self, i: int, j: int, plus: Tensor | None = None) -> Tensor:
        """Returns pixel (i, j) of an `Across`, shape (n, outputs), plus something or the bias."""
        d = self.dilation
        taps = self._rows(i, slice(j, j + d + 1, d)).view(-1, len(self.weight))
        return torch.addmm(self.bias if plus is None else plus, taps, self.weight)

    def take(self, index: Tensor) -> None:
        """Goes on with some of the images."""
        self.seen = self.seen[index]


class Block:
    """A gated block and the caches of its two convolutions."""

    def __init__(self, block: Gated, n: int, width: int) -> None:
        self.first = Cache(block.first, n, width)
        self.second = Cache(block.second, n, width)
        side = None if block.side is None else block.side.weight.detach().t()
        self.side = self.first.weight.new_zeros(0, len(self.first.bias)) if side is None else side

    def take(self, index: Tensor) -> None:
        """Goes on with some of the images."""
        self.first.take(index)
        self.second.take(index)


class ConvStepper:
    """Caches what every convolution reads, so that each layer is evaluated once at each pixel."""

    mixed: tuple[Tensor, ...]
    above: Tensor
    beside: list[Tensor]
    near: Tensor

    def __init__(self, model: CausalConv, n: int, context: Tensor | None) -> None:
        self.model, self.n = model, n
        _, height, width = model.shape
        self.filters = model.theta.mix.weight.shape[1] // 2
        self.firsts = [
            Cache(layer, n, width) for layer in (model.first_down, model.above, model.first_left)
        ]
        self.down = self._blocks(model.down)
        self.across = self._blocks(model.across)
        self.side = None if context is None else context.t()
        self.pixel = model.theta.bias.new_zeros(n, model.shape[0] * model.inputs[0] + 1)
        self.x = self.pixel.new_zeros(n, height + 1, width + 2, self.pixel.shape[1])
        self.column = 0
        self.place = (-1, width - 1)
        self._advance()

    def _blocks(self, blocks: nn.ModuleList) -> list[Block]:
        return [Block(block, self.n, self.model.shape[2]) for block in gated(blocks)]

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        c, f = self.column % self.model.shape[0], self.model.inputs[0]
        h = self.mixed[c]
        if c:
            h = h + self.model.theta.before[c - 1](self.pixel[:, : c * f])
        bias = self.model.theta.bias[self.column // self.model.shape[0], c]
        near = torch.cat([self.near, self.pixel[:, :-1]], 1)
        theta: Tensor = self.model.theta(c, h.t(), near.t(), bias)
        return theta

    def _near(self, i: int, j: int) -> Tensor:
        """Returns the neighbours before a pixel: left, above left, above, above right."""
        return torch.cat([self.x[:, i + 1, j], self.x[:, i, j : j + 3].flatten(1)], 1)

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        c, f = self.column % self.model.shape[0], self.model.inputs[0]
        self.pixel[:, c * f : (c + 1) * f] = features.t()
        self.column += 1
        if self.column % self.model.shape[0] == 0 and self.column < len(self.model.inputs):
            self.pixel[:, -1] = 1
            self._keep(*self.place)
            self._advance()

    def _keep(self, i: int, j: int) -> None:
        """Writes a pixel to where the first convolutions and the neighbours read it."""
        self.x[:, i + 1, j + 1] = self.pixel
        for cache in self.firsts:
            cache.put(i, j, self.pixel)
        self.pixel.zero_()

    def take(self, index: Tensor) -> None:
        """Goes on with some of the images, of which one may be there several times."""
        self.n = len(index)
        caches: list[Cache | Block] = [*self.firsts, *self.down, *self.across]
        for cache in caches:
            cache.take(index)
        self.x, self.pixel, self.near = self.x[index], self.pixel[index], self.near[index]
        self.above = self.above[index]
        self.side = None if self.side is None else self.side[index]
        self.beside = [part[index] for part in self.beside]
        self.mixed = tuple(part[index] for part in self.mixed)

    def _advance(self) -> None:
        """Goes on to the next pixel with columns; those between are evaluated for later ones."""
        width = self.model.shape[2]
        while True:
            i, j = divmod(self.place[0] * width + self.place[1] + 1, width)
            self.place = (i, j)
            if j == 0:
                self._row(i)
            self._pixel(i, j)
            if self.model.present[i, j]:
                self.near = self._near(i, j)
                return

    def _row(self, i: int) -> None:
        """Evaluates row i of the down stream, which depends on the rows above only."""
        width = self.model.shape[2]
        u = self.pixel.new_zeros(self.n, width, self.filters)
        self.above = u
        if i:
            u, self.above = (cache.row(i - 1) for cache in self.firsts[:2])
        for cache in self.firsts:
            cache.clear(i)
        rows: list[Tensor] = []
        self.beside = []
        for down, across, earlier in zip(self.down, self.across, self.model.shortcuts, strict=True):
            down.first.put_row(i, both_signs(u, -1))
            beside = self._beside(down, at(rows, earlier))
            down.second.put_row(i, both_signs(down.first.row(i, beside), -1))
            u = gate(u, down.second.row(i), -1)
            rows.append(both_signs(u, -1))
            self.beside.append(self._beside(across, rows[-1]))

    def _beside(self, block: Block, row: Tensor | None) -> Tensor:
        """Returns what a row of the down stream and the context add between two convolutions.

        The weights of a block's side features are those of the row, of an earlier block of the
        across stream, which comes pixel by pixel, and of the context, in this order.
        """
        width = self.model.shape[2]
        found = block.first.bias.expand(self.n, width, -1)
        if row is not None:
            found = found + row @ block.side[: 2 * self.filters]
        if self.side is not None:
            found = found + (self.side @ block.side[-self.side.shape[1] :]).unsqueeze(1)
        return found

    def _pixel(self, i: int, j: int) -> None:
        """Evaluates pixel (i, j) of the across stream."""
        v = self.above[:, j]
        if j:
            v = v + self.firsts[2].pixel(i, j - 1)
        done: list[Tensor] = []
        width = 2 * self.filters
        for block, row, earlier in zip(self.across, self.beside, self.model.shortcuts, strict=True):
            block.first.put(i, j, both_signs(v))
            h = block.first.pixel(i, j, row[:, j])
            if earlier is not None:
                h = torch.addmm(h, done[earlier], block.side[width : 2 * width])
            block.second.put(i, j, both_signs(h))
            v = gate(v, block.second.pixel(i, j))
            done.append(both_signs(v))
        self.mixed = self.model.theta.mix(done[-1] if done else both_signs(v)).chunk(
            self.model.shape[0], 1
        )
