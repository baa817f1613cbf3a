"""A density whose conditionals are made narrower or broader, by what held-out rows have shown.

With N_i the distribution function of column i given those before, and B_i an increasing map of
[0, 1] onto itself,

    N′_i(x_i) = B_i(N_i(x_i)),    ν′(x_i | x_<i) = b_i(N_i(x_i)) ν(x_i | x_<i),    b_i = B_i′   (31)

is an exact density for any B_i. A mixture of networks is broader than it should be: each network is
as broad as its own errors are, and their mean errs less.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks
from nits.heads import Head
from nits.model.curve import Curve
from nits.model.density import Density
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.random import uniform

BUMPS = 12
"""m, the number of terms of b: it tells apart what happens in a twelfth of the probabilities."""

LEVELS = 512
"""Quantiles by which moments and entropy are found."""


class Calibrated(Wrapped):
    """The density ν′, equation (31), of a density ν.

    logits: Logarithms of the weights of each column's bumps, shape (D, m), but for a constant that
        is normalized away. Equal ones, as they are by default, leave a column as it is.

    >>> import nits, torch
    >>> plain = nits.NITS.independent(2)
    >>> same = nits.Calibrated(plain)  # equal logits change nothing
    >>> bool(torch.allclose(same.log_prob(torch.ones(1, 2)), plain.log_prob(torch.ones(1, 2))))
    True
    """

    kind: ClassVar[str] = "calibrated"

    logits: Tensor

    def __init__(self, density: Density, logits: Tensor | None = None) -> None:
        super().__init__(density)
        if logits is None:
            logits = torch.zeros(self.columns, BUMPS)
        if logits.shape != (self.columns, BUMPS):
            raise ValueError(
                f"logits must have the shape {(self.columns, BUMPS)}, one row per column, "
                f"but have {tuple(logits.shape)}."
            )
        self.register_buffer("logits", logits.to(density.like))

    def curve(self, column: int) -> Curve | None:
        """Returns B of a column; None if it is the identity."""
        logits = self.logits[column].double()
        return None if bool((logits == logits[0]).all()) else Curve(logits.softmax(0))

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term of log ν′(x), shape (N, D), columns as in x; 0 if missing."""
        x, context = self._checked(x, context)
        found = self.density.log_prob_per_column(x, context)
        middle = self.density.to_uniform(x, context)
        columns = []
        for i, head in enumerate(self.heads):
            parts = middle[:, i], found[:, i], x[:, i]
            columns.append(_calibrated(self.curve(i), head, *parts))
        return torch.stack(columns, 1)

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        curves = map(self.curve, range(self.columns))
        laws = self.density.conditionals(x, context)
        return [
            law if b is None else CalibratedDistribution(law, b, head, self.like)
            for law, b, head in zip(laws, curves, self.heads, strict=True)
        ]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): the middle of B at both ends of x_i."""
        x, context = self._checked(x, context)
        middle = self.density.to_uniform(x, context)
        mass = self.density.log_prob_per_column(x, context).exp()
        columns = []
        for i, head in enumerate(self.heads):
            u, b = middle[:, i], self.curve(i)
            if b is not None:
                half = torch.where(head.has_mass(x[:, i]), mass[:, i], 0.0) / 2
                u = (b.at((u - half).clamp(0, 1)) + b.at((u + half).clamp(0, 1))) / 2
            columns.append(u)
        return torch.stack(columns, 1)

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts n rows, column by column."""
        return CalibratedSteps(self, self.density.steps(n, context))

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        return self.density.possible(x)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the weights from which training on rows like x starts."""
        self.density.start_from(x, context)


class CalibratedSteps(Steps):
    """The next column of ν′, equation (31)."""

    def __init__(self, model: Calibrated, inner: Steps) -> None:
        self.inner = inner
        self.columns = [(model.heads[i], model.curve(i)) for i in model.order.tolist()]
        self.position = 0

    @property
    def curve(self) -> Curve | None:
        """B of the next column."""
        return self.columns[min(self.position, len(self.columns) - 1)][1]

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the logarithm of (31)."""
        found = self.inner.log_prob(x)
        if self.curve is None:
            return found
        mass = torch.where(self.inner.has_mass(x), found.exp(), 0.0)
        return found + self.curve.log_slope(self.inner.cdf(x) - mass / 2, mass)

    def cdf(self, x: Tensor) -> Tensor:
        """Returns B(N(x))."""
        found = self.inner.cdf(x)
        return found if self.curve is None else self.curve.at(found)

    def quantile(self, u: Tensor) -> Tensor:
        """Returns the value at probability B⁻¹(u)."""
        return self.inner.quantile(u if self.curve is None else self.curve.inverse(u))

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability of their own."""
        return self.inner.has_mass(x)

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column."""
        self.inner.feed(x)
        self.position += 1


class CalibratedDistribution(Distribution):
    """A distribution with B applied to its distribution function.

    base: The distribution of one column, whose head says which values have a mass.
    like: A tensor with the dtype and the device of values.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, base: Any, curve: Curve, head: Head, like: Tensor) -> None:
        self.base = base
        self.like = like
        self.curve = curve
        self.head = head
        super().__init__(base.batch_shape, validate_args=False)

    @property
    def support(self) -> Any:
        """That of the distribution inside."""
        return self.base.support

    def expand(
        self, batch_shape: Any, _instance: Distribution | None = None
    ) -> CalibratedDistribution:
        """Returns this distribution with its parameters expanded to a batch shape."""
        return CalibratedDistribution(
            self.base.expand(batch_shape), self.curve, self.head, self.like
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of (31)."""
        found = self.base.log_prob(value)
        mass = torch.where(self.head.has_mass(value), found.exp(), 0.0)
        return _calibrated(self.curve, self.head, self.base.cdf(value) - mass / 2, found, value)

    def cdf(self, value: Tensor) -> Tensor:
        """Returns B(N(x))."""
        return self.curve.at(self.base.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the value at probability B⁻¹(u)."""
        found: Tensor = self.base.icdf(self.curve.inverse(checks.probability(value)))
        return found

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws values."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.like, generator))

    @property
    def mean(self) -> Tensor:
        """E X, by quantiles."""
        return self._quantiles().mean(0)

    @property
    def variance(self) -> Tensor:
        """Var X, by quantiles."""
        return self._quantiles().var(0, unbiased=False)

    def entropy(self) -> Tensor:
        """Returns −E log P(X) in nats, by quantiles."""
        return -self.log_prob(self._quantiles()).mean(0)

    def _quantiles(self) -> Tensor:
        levels = (torch.arange(LEVELS) + 0.5) / LEVELS
        u = levels.reshape(-1, *(1 for _ in self.batch_shape)).expand(-1, *self.batch_shape)
        return self.icdf(u.to(self.like))


def _calibrated(b: Curve | None, head: Head, middle: Tensor, found: Tensor, x: Tensor) -> Tensor:
    """Returns log ν′ of values x from log ν; what is impossible or missing stays so."""
    if b is None:
        return found
    mass = torch.where(head.has_mass(x), found.exp(), 0.0)
    known = ~torch.isnan(middle) & (found > -torch.inf)
    more = b.log_slope(middle.masked_fill(~known, 0.5), mass.masked_fill(~known, 0.0))
    return found + more.masked_fill(~known, 0.0)
