"""Real columns, and columns of equal bins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks, initial, pnn
from nits.distributions import PNN, QuantizedPNN
from nits.heads.pnn_head import PNNHead


@dataclass(frozen=True)
class Continuous(PNNHead):
    """A real column with a density on [low, high]; either end may be infinite, as both are by default.

    hidden: Widths of the PNN's hidden layers.
    knots: How many hat functions of the value the weight model reads beside it; 0, or at least 2.
    """

    low: float = -math.inf
    high: float = math.inf
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high)

    @property
    def kind(self) -> tuple[object, ...]:
        """Continuous heads with the same hidden layers go together."""
        return ("continuous", self.hidden)

    @property
    def kernel(self) -> tuple[object, ...]:
        """Densities at a point."""
        return ("density", self.hidden)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """One point: x itself, or the nearest end if it lies outside."""
        return (self.upper(x, low, high),)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns x itself, or the nearest end if it lies outside."""
        return torch.minimum(torch.maximum(x, low), high)

    def log_mass(self, at: pnn.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns log ν(x), equation (5)."""
        return pnn.log_density(at, *points)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether low ≤ x ≤ high and x is finite."""
        return (x >= low) & (x <= high) & ~torch.isinf(x)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The point itself."""
        return quantile

    def reading(self, x: Tensor) -> Tensor:
        """The value itself."""
        return x

    @property
    def reading_ends(self) -> tuple[float, float]:
        """The ends of the support."""
        return self.low, self.high

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> PNN:
        """Returns the PNN with weights theta."""
        return PNN(theta, low, high, self.hidden)

    def initial(self, x: Tensor) -> Tensor:
        """Returns weights that follow the quantiles of x."""
        return initial.from_quantiles(x, self.hidden)


@dataclass(frozen=True)
class Quantized(PNNHead):
    """An integer column 0 … bins − 1: the probabilities of equal bins that tile [low, high]."""

    low: float
    high: float
    bins: int
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high, finite=True)
        checks.bins(self.bins)

    @property
    def kind(self) -> tuple[object, ...]:
        """Quantized heads with the same hidden layers and bins go together."""
        return ("quantized", self.hidden, self.bins)

    @property
    def kernel(self) -> tuple[object, ...]:
        """Masses between two points."""
        return ("mass", self.hidden)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the bin."""
        k = torch.where(self.possible(x, low, high) | torch.isnan(x), x, torch.zeros_like(x))
        return self._edge(k, low, high), self._edge(k + 1, low, high)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of the bin ⌊x⌋."""
        return self._edge((x.floor() + 1).clamp(0, self.bins), low, high)

    def log_mass(self, at: pnn.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns log P(k), equation (6)."""
        return pnn.log_mass(at, *points)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer in 0 … bins − 1."""
        return (x >= 0) & (x < self.bins) & (x == x.floor())

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the bin that the point falls into."""
        share = (quantile - low) / (high - low)
        return (share * self.bins).floor().clamp(0, self.bins - 1)

    def reading(self, x: Tensor) -> Tensor:
        """The middle of the bin, on a scale from −1 to 1."""
        return (2 * x + 1) / self.bins - 1

    @property
    def reading_ends(self) -> tuple[float, float]:
        """From −1 to 1."""
        return -1.0, 1.0

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> QuantizedPNN:
        """Returns the quantized PNN with weights theta."""
        return QuantizedPNN(theta, low, high, self.bins, self.hidden)

    def initial(self, x: Tensor) -> Tensor:
        """Returns weights that follow the quantiles of x, spread over the bins."""
        return initial.from_quantiles(
            self.low + (self.high - self.low) * (initial.spread_out(x) / self.bins), self.hidden
        )

    def _edge(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return torch.where(k >= self.bins, high, low + (high - low) * (k / self.bins))
