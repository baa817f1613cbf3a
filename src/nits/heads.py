"""What a column is: how many weights its distribution takes, what the network reads of it, where it starts.

All tensors are weights-first: theta has shape (P, *), a column's values shape (*).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks, initial, pnn, roots
from nits.distributions import PNN, QuantizedPNN


class Head(ABC):
    """A kind of column. Heads of one `kind` are evaluated together, their supports side by side."""

    low: float
    high: float
    hidden: tuple[int, ...]
    knots: int

    @property
    def weights(self) -> int:
        """P, the number of weights of one conditional distribution."""
        return pnn.parameters(self.hidden)

    @property
    def inputs(self) -> int:
        """How many features the weight model reads of a value: see `nits.reading`."""
        return 1 + self.knots

    @property
    @abstractmethod
    def kind(self) -> tuple[object, ...]:
        """What two heads must share to be evaluated together."""

    @abstractmethod
    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Returns the points of [low, high] that the likelihood of x is made from."""

    @abstractmethod
    def log_prob(self, at: pnn.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns the log-probability or log-density of values given as points in the support."""

    @abstractmethod
    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x can occur at all."""

    @abstractmethod
    def to_uniform(self, at: pnn.Frame, x: Tensor) -> Tensor:
        """Returns the probability below x; of a discrete x, half of its own probability included."""

    def from_uniform(self, at: pnn.Frame, u: Tensor) -> Tensor:
        """Returns the value at probability u."""
        return self.value(roots.quantile(at, u, 1 - u), at.low, at.high)

    @abstractmethod
    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the value that a point of the support [low, high] stands for."""

    @abstractmethod
    def reading(self, x: Tensor) -> Tensor:
        """Returns x on the scale on which the weight model reads it."""

    @property
    @abstractmethod
    def reading_ends(self) -> tuple[float, float]:
        """The least and the greatest number that the weight model may read."""

    @abstractmethod
    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> Distribution:
        """Returns the distribution with weights theta, shape (*, P), on [low, high]."""

    @abstractmethod
    def initial(self, x: Tensor) -> Tensor:
        """Returns weights, shape (P,), with which the distribution follows the values x, shape (N,)."""


@dataclass(frozen=True)
class Continuous(Head):
    """A real column with a density on [low, high]; either end may be infinite, as both are by default.

    hidden: Widths of the PNN's hidden layers.
    knots: How many hat functions of the value the weight model reads beside it; 0, or at least 2.
    """

    low: float = -math.inf
    high: float = math.inf
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high)

    @property
    def kind(self) -> tuple[object, ...]:
        """Continuous heads with the same hidden layers go together."""
        return ("continuous", self.hidden)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """One point: x itself, or the nearest end if it lies outside."""
        return (torch.minimum(torch.maximum(x, low), high),)

    def log_prob(self, at: pnn.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns log ν(x), equation (5)."""
        return pnn.log_density(at, *points)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether low ≤ x ≤ high and x is finite."""
        return (x >= low) & (x <= high) & ~torch.isinf(x)

    def to_uniform(self, at: pnn.Frame, x: Tensor) -> Tensor:
        """Returns N(x)."""
        return pnn.cdf(at, torch.minimum(torch.maximum(x, at.low), at.high))[0]

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
class Quantized(Head):
    """An integer column 0 … bins − 1: the probabilities of equal bins that tile [low, high]."""

    low: float
    high: float
    bins: int
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high, finite=True)
        checks.bins(self.bins)

    @property
    def kind(self) -> tuple[object, ...]:
        """Quantized heads with the same hidden layers and bins go together."""
        return ("quantized", self.hidden, self.bins)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the bin."""
        k = torch.where(self.possible(x, low, high) | torch.isnan(x), x, torch.zeros_like(x))
        return self._edge(k, low, high), self._edge(k + 1, low, high)

    def log_prob(self, at: pnn.Frame, points: tuple[Tensor, ...]) -> Tensor:
        """Returns log P(k), equation (6)."""
        return pnn.log_mass(at, *points)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer in 0 … bins − 1."""
        return (x >= 0) & (x < self.bins) & (x == x.floor())

    def to_uniform(self, at: pnn.Frame, x: Tensor) -> Tensor:
        """Returns P(K < k) + P(K = k) / 2."""
        start, end = self.points(x, at.low, at.high)
        return (pnn.cdf(at, start)[0] + pnn.cdf(at, end)[0]) / 2

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
        # Multiples of the golden ratio fill each bin evenly, however many values it holds.
        jitter = (torch.arange(len(x), dtype=torch.float64, device=x.device) * 0.6180339887498949) % 1
        spread = (x.sort().values + jitter.to(x.dtype)) / self.bins
        return initial.from_quantiles(self.low + (self.high - self.low) * spread, self.hidden)

    def _edge(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return torch.where(k >= self.bins, high, low + (high - low) * (k / self.bins))


def real_columns(heads: Sequence[Head] | int) -> tuple[Head, ...]:
    """Returns heads as they are, or that many continuous ones."""
    if isinstance(heads, int):
        heads = [Continuous() for _ in range(heads)]
    if not heads or not all(isinstance(head, Head) for head in heads):
        raise ValueError(
            f"heads must be a number of real columns or one head per column, but is {heads!r}; "
            "try 8, or a list of nits.heads.Continuous()."
        )
    return tuple(heads)
