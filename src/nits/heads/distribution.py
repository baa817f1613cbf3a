"""A torch.distributions face for any head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.heads.head import Given, Head
from nits.pnn.random import uniform


class ColumnDistribution(Distribution):
    """The distribution of a column with weights theta, shape (*, P), on a support from low to high."""

    arg_constraints: ClassVar = {"theta": constraints.real_vector}

    def __init__(
        self, head: Head, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> None:
        self.head, self.theta = head, checks.real("theta", theta)
        ends = checks.support(low, high, theta)
        self.given = Given(theta.movedim(-1, 0), *ends)
        super().__init__(theta.shape[:-1], validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the log-probability or log-density of values, shape (*sample, *batch)."""
        x, given = self._expanded(checks.real("x", value, self.theta))
        impossible = ~self.head.possible(x, given.low, given.high) & ~torch.isnan(x)
        return self.head.log_prob(given, x).masked_fill(impossible, -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(X ≤ x)."""
        x, given = self._expanded(checks.real("x", value, self.theta))
        return self.head.cdf(given, x)

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the value at probability u."""
        u, given = self._expanded(checks.probability(checks.real("u", value, self.theta)))
        return self.head.from_uniform(given, u)

    def sample(
        self,
        sample_shape: torch.Size | Sequence[int] = (),
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draws values."""
        shape = self._extended_shape(torch.Size(sample_shape))
        with torch.no_grad():
            return self.icdf(uniform(shape, self.theta, generator))

    def _expanded(self, x: Tensor) -> tuple[Tensor, Given]:
        """Returns values and weights with the same shape behind the weights' first dimension."""
        shape = torch.broadcast_shapes(x.shape, self.batch_shape)
        theta, low, high, _ = self.given
        extra = len(shape) - len(self.batch_shape)
        theta = theta.reshape(len(theta), *(1 for _ in range(extra)), *self.batch_shape)
        return x.expand(shape), Given(
            theta.expand(-1, *shape), low.expand(shape), high.expand(shape)
        )
