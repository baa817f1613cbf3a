"""What every kind of column has: a number of weights, features to be read, a distribution given its weights.

Values of g columns have shape (g, N) and their weights (g, P, N); of one column (N,) and (P, N).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits.pnn.support import restricted


class Given(NamedTuple):
    """The weights of conditional distributions and the ends of their supports.

    theta: Shape (g, P, N) for g columns and N rows, or (P, N) for one column; N may be 1.
    low, high: Broadcast to the values, shape (g, N) or (N,).
    """

    theta: Tensor
    low: Tensor
    high: Tensor


class Head(ABC):
    """A kind of column. Heads of one `kind` are evaluated together, their supports side by side.

    low, high: Ends of the support, on the scale of the PNN if there is one.
    knots: How many hat functions of the value the weight model reads beside it.
    optional: Whether the value may be missing, NaN: it then has no likelihood, and later columns
        are told.
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
        """How many weights at the start of θ are slopes of units, as many centres coming next."""
        return 0

    @property
    def inputs(self) -> int:
        """How many features the weight model reads of a value: see `nits.reading`."""
        return self.read + self.optional

    @property
    @abstractmethod
    def read(self) -> int:
        """How many features there are of a value that is known."""

    @property
    @abstractmethod
    def kind(self) -> tuple[object, ...]:
        """What two heads must share to be evaluated together."""

    @property
    def discrete(self) -> bool:
        """Whether values are whole numbers, each with a probability."""
        return False

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability of their own, where others have a density."""
        return torch.full_like(x, self.discrete, dtype=torch.bool)

    def log_prob(self, given: Given, x: Tensor) -> Tensor:
        """Returns the log-probability or log-density of x: impossible is −inf, and NaN stays NaN.

        Where the column may be missing, NaN is that, and has no likelihood: 0.
        """
        missing = torch.isnan(x)
        known = x.masked_fill(missing, 0.0) if self.optional else x
        possible = self.possible(known, given.low, given.high)
        found = restricted(self.log_prob_inside(given, known), known, possible)
        return found.masked_fill(missing, 0.0) if self.optional else found

    @abstractmethod
    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns the same for values that are possible; any finite number for others."""

    @abstractmethod
    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x can occur at all."""

    @abstractmethod
    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns the probability below x; of a discrete x, half of its own probability included."""

    @abstractmethod
    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) for any number x."""

    @abstractmethod
    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u."""

    @abstractmethod
    def features(self, x: Tensor, knots: Tensor) -> Tensor:
        """Returns what the weight model reads of x, shape (read, *)."""

    @abstractmethod
    def even_knots(self) -> Tensor:
        """Returns the knots before any data, shape (knots,)."""

    @abstractmethod
    def knots_at(self, x: Tensor) -> Tensor:
        """Returns the knots that follow the values x, shape (N,)."""

    @abstractmethod
    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> Distribution:
        """Returns the distribution with weights theta, shape (*, P), on [low, high]."""

    @abstractmethod
    def initial(self, x: Tensor) -> Tensor:
        """Returns weights, shape (P,), with which the distribution follows the values x, shape (N,)."""
