"""Rows column by column: the distribution of the next column, given those fed so far."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nits.heads import Given, Head
from nits.model.ends import Ends
from nits.model.reading import Reading
from nits.weights import Stepper

Function = Callable[[Tensor], Tensor]


class Steps(ABC):
    """The next column of N rows, in modelling order; its values have shape (N,)."""

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log-probability or log-density of the next column's values."""

    @abstractmethod
    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) of the next column."""

    @abstractmethod
    def quantile(self, u: Tensor) -> Tensor:
        """Returns the next column's values at probabilities u."""

    @abstractmethod
    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which of the next column's values have a probability of their own."""

    @abstractmethod
    def feed(self, x: Tensor) -> None:
        """Takes the values of the next column and moves on to the one after it."""

    def between(self, u: Tensor, low: float, high: float) -> Tensor:
        """Returns probabilities whose quantiles lie in (low, high], from u uniform in (0, 1)."""
        if low == -math.inf and high == math.inf:
            return u
        below = self.cdf(torch.full_like(u, low))
        above = self.cdf(torch.full_like(u, high))
        found = below + u * (above - below)
        return torch.maximum(found, torch.nextafter(below, torch.ones_like(below)))

    def quantile_of(self, rows: Tensor, u: Tensor) -> Tensor:
        """Returns the next column's values of some rows; u are probabilities of all rows."""
        return self.quantile(u)[rows]

    def draw(self, u: Tensor) -> Tensor:
        """Returns draws of the next column by uniform numbers u, by default quantiles."""
        return self.quantile(u)

    def drawn(self, u: Tensor, given: Tensor, found: Function | None = None) -> Tensor:
        """Returns the given values, and where they are NaN values found by u, as quantiles."""
        draw = torch.isnan(given)
        if not draw.any():
            return given
        values = (found or self.quantile)(u)
        return values if draw.all() else torch.where(draw, values, given)

    def rows(
        self,
        order: Tensor,
        u: Tensor,
        given: Tensor,
        within: Sequence[tuple[float, float]] | None = None,
        found: Function | None = None,
    ) -> Tensor:
        """Returns whole rows at probabilities u, shape (N, D), except for values that are given.

        order: The columns in modelling order, none of which has been fed yet.
        given: NaN where values are to be found.
        within: For each column (low, high): the others are found in (low, high].
        found: What finds the values of the next column: `quantile` by default, or `draw`.
        """
        columns = []
        for i in order.tolist():
            at = u[:, i] if within is None else self.between(u[:, i], *within[i])
            columns.append(self.drawn(at, given[:, i], found))
            self.feed(columns[-1])
        return torch.stack(columns, 1)[:, order.argsort()]


class HeadSteps(Steps):
    """The steps of `NITS`: a stepper of the weight model hands out the weights of each column.

    heads, ends, reading: Those of the model, in modelling order.
    stepper: That of the weight model.
    """

    def __init__(
        self, heads: Sequence[Head], ends: Ends, reading: Reading, stepper: Stepper
    ) -> None:
        self.heads = heads
        self.ends = ends
        self.reading = reading
        self.stepper = stepper
        self.position = 0
        self.recorded = torch.is_grad_enabled()
        self._given: Given | None = None

    @property
    def head(self) -> Head:
        """What the next column is."""
        return self.heads[self.position]

    @property
    def given(self) -> Given:
        """The weights of the next column, shape (P, N), and the ends of its support."""
        if self._given is None:
            low, high = self.ends.low[self.position], self.ends.high[self.position]
            with torch.set_grad_enabled(self.recorded):
                self._given = Given(self.stepper.theta(), low, high)
        return self._given

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the head's log-probability."""
        return self.head.log_prob(self.given, x)

    def cdf(self, x: Tensor) -> Tensor:
        """Returns the head's distribution function."""
        return self.head.cdf(self.given, x)

    def quantile(self, u: Tensor) -> Tensor:
        """Returns the head's quantiles."""
        return self.head.from_uniform(self.given, u)

    def quantile_of(self, rows: Tensor, u: Tensor) -> Tensor:
        """Returns the head's quantiles of some rows."""
        theta, *ends = self.given
        theta = theta if theta.shape[-1] == 1 else theta[:, rows]
        return self.head.from_uniform(Given(theta, *ends), u[rows])

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability of their own under the head."""
        return self.head.has_mass(x)

    def feed(self, x: Tensor) -> None:
        """Hands the features of the values to the weight model."""
        self._given = None  # its memory is free for the next column's weights
        self.stepper.feed(self.reading.column(self.position, x))
        self.position += 1
