"""A column of integers, whose probabilities are a PNN's masses of unit intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks
from nits.heads.distribution import ColumnDistribution
from nits.heads.pnn_head import PNNHead
from nits.pnn import initial, network


@dataclass(frozen=True)
class Integer(PNNHead):
    """A column of integers k, each an interval of width 1/scale around (k − shift)/scale under a PNN.

    least, greatest: The integers there can be, both included; either may be infinite, as both are
        by default.
    shift, scale: A middle value and a spread of the column, which bring it to ordinary size.
    hidden: Of the PNN; the paper's by default, see `Continuous`.
    """

    least: float = -math.inf
    greatest: float = math.inf
    shift: float = 0.0
    scale: float = 1.0
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.integers(self.least, self.greatest)
        checks.scale(self.scale)

    @property
    def low(self) -> float:  # type: ignore[override]
        """The lower end of the least integer's interval, on the scale of the PNN."""
        return (self.least - 0.5 - self.shift) / self.scale

    @property
    def high(self) -> float:  # type: ignore[override]
        """The upper end of the greatest integer's interval."""
        return (self.greatest + 0.5 - self.shift) / self.scale

    @property
    def kind(self) -> tuple[object, ...]:
        """Integer heads with the same hidden layers and scale go together."""
        return ("integer", self.hidden, self.least, self.greatest, self.shift, self.scale)

    @property
    def kernel(self) -> tuple[object, ...]:
        """Masses between two points."""
        return ("mass", self.hidden)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the interval."""
        k = torch.where(
            self.possible(x, low, high) | torch.isnan(x), x, torch.full_like(x, self._inner())
        )
        edges = [((k - self.shift) + half) / self.scale for half in (-0.5, 0.5)]
        start = torch.where(k <= self.least, low, edges[0])
        return start, torch.where(k >= self.greatest, high, edges[1])

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of the interval of ⌊x⌋."""
        k = x.floor()
        edge = torch.where(k >= self.greatest, high, ((k - self.shift) + 0.5) / self.scale)
        return torch.where(k < self.least, low, edge)

    def _inner(self) -> float:
        """An integer that can be."""
        return min(max(round(self.shift), self.least), self.greatest)

    def log_mass(self, at: network.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns log P(k), equation (6)."""
        return network.log_mass(at, *points)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer from least to greatest."""
        return (x >= self.least) & (x <= self.greatest) & (x == x.floor()) & ~torch.isinf(x)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the integer whose interval the point falls into."""
        return (quantile * self.scale + self.shift).round().clamp(self.least, self.greatest)

    def reading(self, x: Tensor) -> Tensor:
        """The integer, shifted and scaled."""
        return (x - self.shift) / self.scale

    @property
    def reading_ends(self) -> tuple[float, float]:
        """The ends of the support."""
        return self.low, self.high

    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> ColumnDistribution:
        """Returns the PNN with weights theta, seen through the integers."""
        return ColumnDistribution(self, theta, low, high)

    def initial(self, x: Tensor) -> Tensor:
        """Returns weights that follow the quantiles of x, spread over the intervals."""
        spread = (initial.spread_out(x) - 0.5 - self.shift) / self.scale
        return initial.from_quantiles(spread, self.hidden)
