"""What every kind of column has: a number of weights, features, and a distribution given weights.

Values of g columns have shape (g, N) and their weights (g, P, N); those of one column (N,) and
(P, N).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import kernels
from nits.heads import cycles
from nits.heads.cycles import Cycle
from nits.pnn import initial
from nits.pnn.initial import Line
from nits.pnn.plain import parameters
from nits.pnn.support import restricted


class Given(NamedTuple):
    """The weights of conditional distributions and the ends of their supports.

    theta: Shape (g, P, N) for g columns and N rows, or (P, N) for one column; N may be 1.
    low, high: Broadcast to the values, shape (g, N) or (N,).
    """

    theta: Tensor
    low: Tensor
    high: Tensor


def moved(rows: slice, by: int) -> slice:
    """Returns the same rows of θ, further down."""
    return slice(rows.start + by, rows.stop + by)


class Head(ABC):
    """A kind of column. Neighbouring heads of the same `kind` are evaluated together.

    low, high: Ends of the support, on the scale of the PNN if there is one.
    knots: Number of hat functions of the value that the weight model reads too.
    optional: Whether the value may be missing, NaN: it then adds nothing to the log-likelihood, and
        later columns read that it is missing.
    """

    low: float
    high: float
    knots: int
    optional: bool

    @property
    @abstractmethod
    def weights(self) -> int:
        """P, the number of weights of one conditional distribution."""

    @property
    def units(self) -> int:
        """Number of units whose slopes come first in θ, followed by as many centres."""
        return 0

    @property
    def inputs(self) -> int:
        """Number of features that the weight model reads of a value: see `nits.model.reading`."""
        return self.read + self.optional

    @property
    @abstractmethod
    def read(self) -> int:
        """Number of features of a value that is not missing."""

    @property
    @abstractmethod
    def kind(self) -> tuple[object, ...]:
        """What two heads must share to be evaluated together."""

    @property
    def discrete(self) -> bool:
        """Whether values are integers, each with a probability."""
        return False

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability of their own, and not a density."""
        return torch.full_like(x, self.discrete, dtype=torch.bool)

    def log_prob(self, given: Given, x: Tensor) -> Tensor:
        """Returns the log-probability or log-density of x: impossible is −inf, and NaN stays NaN.

        In an optional column, NaN is a missing value, whose log-probability is 0.
        """
        missing = torch.isnan(x)
        known = x.masked_fill(missing, 0.0) if self.optional else x
        possible = self.possible(known, given.low, given.high)
        found = self.log_prob_inside(given, known)
        if torch.compiler.is_compiling() or not bool(possible.all()):  # in training all are
            found = restricted(found, known, possible)
        return found.masked_fill(missing, 0.0) if self.optional else found

    @abstractmethod
    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns `log_prob` of possible values, and any finite number for others."""

    @abstractmethod
    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x lies in the support."""

    @abstractmethod
    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X < x) + P(X = x) / 2, which is P(X ≤ x) where there is a density."""

    @abstractmethod
    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) for any number x."""

    @abstractmethod
    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u."""

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Returns the features of x without its hats, shape (read − knots, *)."""

    @property
    def reading_ends(self) -> tuple[float, float]:
        """The least and the greatest value of the first feature: knots lie between them."""
        return self.low, self.high

    def hat_values(self, x: Tensor) -> Tensor:
        """Returns the values, on the scale of the first feature, whose quantiles become knots."""
        return self.features(x)[0]

    @abstractmethod
    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> Distribution:
        """Returns the distribution with weights theta, shape (*, P), on [low, high]."""

    @property
    def followers(self) -> slice:
        """Where in θ the centres of the units stand that follow a guess of the value."""
        return slice(0, 0)

    def placed(self, x: Tensor) -> Tensor:
        """Returns x, shape (N,), as points of the PNN's support; NaN for values that have none."""
        return torch.full_like(x, torch.nan)

    @abstractmethod
    def initial(self, x: Tensor, line: Line | None = None) -> Tensor:
        """Returns weights, shape (P,), of a distribution that follows the values x, shape (N,).

        line: Guesses of the `placed` values, by which some centres will be moved.
        """


class PNNHead(Head):
    """A column whose value is a point of [low, high] under a PNN, or an interval around one.

    Here values are points of the support; subclasses whose values are intervals override `points`,
    `upper`, `possible` and `value`.

    cycles: What the weight model reads of a value's place in cycles, such as the time of day.
    """

    hidden: tuple[int, ...]
    cycles: tuple[Cycle, ...] = ()

    @property
    def weights(self) -> int:
        """P, the number of weights of the PNN."""
        return parameters(self.hidden)

    @property
    def units(self) -> int:
        """Number of units of the PNN's first layer."""
        return self.hidden[0]

    @property
    def read(self) -> int:
        """The value, its hats, and its place in each cycle."""
        return 1 + self.knots + cycles.width(self.cycles)

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Returns the points on which the likelihood of x depends: x, or its interval's ends."""
        return (self.upper(x, low, high),)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the point t of [low, high] with P(X ≤ x) = N(t)."""
        return torch.minimum(torch.maximum(x, low), high)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether low ≤ x ≤ high and x is finite."""
        return (x >= low) & (x <= high) & ~torch.isinf(x)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the value at a point of the support [low, high]."""
        return quantile

    def reading(self, x: Tensor) -> Tensor:
        """Returns x on the scale on which the weight model reads it."""
        return x

    def features(self, x: Tensor) -> Tensor:
        """The value on the scale on which the weight model reads it, and its place in cycles."""
        value = self.reading(x).unsqueeze(0)
        return torch.cat([value, cycles.features(x, self.cycles)]) if self.cycles else value

    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns log ν(x), equation (5), or log P(x), equation (6)."""
        points = self.points(x, given.low, given.high)
        return kernels.log_prob(given.theta, points, given.low, given.high, self.hidden)

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns N(x); for an interval, the mean of N at both ends."""
        points = self.points(x, given.low, given.high)
        return torch.stack([self._below(given, point) for point in points]).mean(0)

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X ≤ x)."""
        return self._below(given, self.upper(x, given.low, given.high))

    def _below(self, given: Given, point: Tensor) -> Tensor:
        return kernels.cdf(given.theta, point, given.low, given.high, self.hidden)

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u."""
        x = kernels.quantile(given.theta, u, given.low, given.high, self.hidden)
        return self.value(x, given.low, given.high)

    @property
    def followers(self) -> slice:
        """Half of the centres, which come after the slopes; none of a PNN with several layers."""
        count = self.units // 2 if len(self.hidden) == 1 else 0
        return slice(self.units, self.units + count)

    def placed(self, x: Tensor) -> Tensor:
        """Returns x itself; subclasses spread the values over their intervals."""
        return x

    def initial(self, x: Tensor, line: Line | None = None) -> Tensor:
        """Returns weights that follow the quantiles of the placed values."""
        points = self.placed(x)
        if line is None or self.followers.start == self.followers.stop:
            return initial.from_quantiles(points, self.hidden)
        return initial.with_line(points, line, self.units)
