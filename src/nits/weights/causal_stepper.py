"""NITS-CONV evaluated one channel of one pixel at a time, as sampling needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nits.weights.causal_layers import at, beside, both_signs, gate, gated

if TYPE_CHECKING:
    from nits.weights.causal_conv import CausalConv


class ConvStepper:
    """Caches what every convolution reads, so that each layer is evaluated once at each pixel."""

    above: Tensor
    mixed: tuple[Tensor, ...]

    def __init__(self, model: CausalConv, n: int, context: Tensor | None) -> None:
        self.model, self.n = model, n
        channels, height, width = model.shape
        like = model.theta.bias
        self.x = like.new_zeros(n, channels * model.inputs[0] + 1, height, width)
        self.x[:, -1] = model.present.to(like)
        self.side = None if context is None else context.t()
        filters = model.theta.mix.weight.shape[1] // 2
        blocks = len(model.down)
        # The inputs of both convolutions of each block, in each stream.
        self.read = {
            name: [
                [like.new_zeros(n, 2 * filters, height, width) for _ in range(2)]
                for _ in range(blocks)
            ]
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
            h = h + self.model.theta.before[c - 1](self.x[:, : c * f, i, j])
        bias = self.model.theta.bias[self.column // self.model.shape[0], c]
        theta: Tensor = self.model.theta(c, h.t(), self._near(i, j).t(), bias)
        return theta

    def _near(self, i: int, j: int) -> Tensor:
        """Returns the neighbours before a pixel and its own channels so far, shape (N, n)."""
        none, width = self.x.new_zeros(self.n, self.x.shape[1]), self.model.shape[2]
        places = ((i, j - 1), (i - 1, j - 1), (i - 1, j), (i - 1, j + 1))
        found = [self.x[:, :, a, b] if a >= 0 and 0 <= b < width else none for a, b in places]
        return torch.cat([*found, self.x[:, :-1, i, j]], 1)

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        c, f = self.column % self.model.shape[0], self.model.inputs[0]
        i, j = self.place
        self.x[:, c * f : (c + 1) * f, i, j] = features.t()
        self.column += 1
        if self.column % self.model.shape[0] == 0 and self.column < len(self.model.inputs):
            self._advance()

    def take(self, index: Tensor) -> None:
        """Goes on with some of the images, of which one may be there several times."""
        self.x, self.above = self.x[index], self.above[index]
        self.side = None if self.side is None else self.side[index]
        self.read = {
            name: [[part[index] for part in pair] for pair in blocks]
            for name, blocks in self.read.items()
        }
        self.rows = [row[index] for row in self.rows]
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
                return

    def _row(self, i: int) -> None:
        """Evaluates row i of the down stream, which depends on the rows above only."""
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
        blocks = zip(
            gated(model.across), self.read["across"], self.rows, model.shortcuts, strict=True
        )
        for block, (first, second), row, earlier in blocks:
            first[:, :, i, j] = both_signs(v)
            side = beside(row[:, :, j], at(done, earlier), self.side)
            second[:, :, i, j] = block.between(block.first.pixel(first, i, j), side)
            v = gate(v, block.second.pixel(second, i, j))
            done.append(both_signs(v))
        self.mixed = model.theta.mix(both_signs(v)).chunk(model.shape[0], 1)
