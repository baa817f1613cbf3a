"""A density of linearly decorrelated columns, for strongly correlated ones such as pixels.

With L lower triangular in the order in which columns are modelled,

    u = L (x − m),    log ν(x) = log ν_u(u) + Σ_i log L_ii                                  (18)

u_i depends on x_1 … x_i only, so a product (15) over u is one over x. Any L and m give an exact
density; those fitted to the data make the columns of u uncorrelated with standard deviation one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits.heads import Continuous
from nits.model.density import Density
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.affine import Affine

RIDGE = 1e-6
"""Added to the variances, relative to them, before L is found, in case columns are collinear."""


class Whitened(Wrapped):
    """The density of x, made of one of u, equation (18).

    density: The density of u: real columns without limits, atoms or missing values.

    >>> import nits, torch
    >>> x = torch.randn(200, 1)
    >>> rows = torch.cat([x, x + 0.01 * torch.randn(200, 1)], 1)  # one nearly determines the other
    >>> model = nits.Whitened(nits.NITS.mlp(2, hidden=16, blocks=1))
    >>> len(nits.fit(model, rows, max_steps=5, progress=False).validation) > 0
    True
    """

    kind = "whitened"

    mean: Tensor
    factor: Tensor

    def __init__(self, density: Density) -> None:
        super().__init__(density)
        for head in density.heads:
            unlimited = isinstance(head, Continuous) and head.low == -head.high == -math.inf
            if not unlimited or head.optional:
                raise ValueError(
                    "whitened columns must be real ones without limits, atoms or missing values, "
                    f"but one is {head}; turn whitening off."
                )
        self.register_buffer("mean", torch.zeros(self.columns))
        self.register_buffer("factor", torch.eye(self.columns))

    def whiten(self, x: Tensor) -> Tensor:
        """Returns u for rows x, shape (N, D), columns as in x; NaN from a row's first NaN on."""
        missing = torch.isnan(x[:, self.order]).cummax(1).values
        ordered = x[:, self.order].double() - self.mean.double()
        infinite = torch.isinf(ordered)
        u = ordered.masked_fill(missing | infinite, 0.0) @ self.factor.double().t()
        u = torch.where(infinite, ordered, u).masked_fill(missing, torch.nan)
        return u.to(x.dtype)[:, self.order.argsort()]

    @property
    def _log_scale(self) -> Tensor:
        """Logarithms of L_ii, shape (D,), columns as in x."""
        return self.factor.diagonal().log()[self.order.argsort()]

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term of log ν(x), shape (N, D), columns as in x."""
        x, context = self._checked(x, context)
        return self.density.log_prob_per_column(self.whiten(x), context) + self._log_scale

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        x, context = self._checked(x, context)
        u = self.whiten(x)
        scale = torch.exp(-self._log_scale)
        parts = zip(self.density.conditionals(u, context), (x - scale * u).t(), scale, strict=True)
        return [Affine(base, loc, by) for base, loc, by in parts]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""
        x, context = self._checked(x, context)
        return self.density.to_uniform(self.whiten(x), context)

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts n rows, column by column."""
        return WhitenedSteps(self, n, context)

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        return self.density.possible(self.whiten(x))

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Fits m and L to rows x, shape (N, D), and starts the density of u from whitened rows."""
        self.follow(x)
        self.density.start_from(self.whiten(x), context)

    def follow(self, x: Tensor) -> None:
        """Sets m and L so that the columns of u are uncorrelated on rows x, shape (N, D)."""
        ordered = x[:, self.order].double()
        covariance = torch.atleast_2d(torch.cov(ordered.t()))
        ridge = torch.diag(RIDGE * covariance.diagonal())
        identity = torch.eye(self.columns, dtype=torch.float64, device=x.device)
        lower = torch.linalg.cholesky(covariance + ridge)
        self.mean.copy_(ordered.mean(0))
        self.factor.copy_(torch.linalg.solve_triangular(lower, identity, upper=False))


class WhitenedSteps(Steps):
    """Columns of x: each is loc + u_i / L_ii, where loc depends on the columns before."""

    def __init__(self, model: Whitened, n: int, context: Tensor | None) -> None:
        self.model = model
        self.inner = model.density.steps(n, context)
        self.factor = model.factor.double()
        self.fed = [torch.zeros(n, dtype=torch.float64, device=model.like.device)]  # x − m

    @property
    def scale(self) -> Tensor:
        """1 / L_ii of the next column."""
        position = len(self.fed) - 1
        return 1 / self.factor[position, position]

    @property
    def loc(self) -> Tensor:
        """The x_i with u_i = 0: m_i − Σ_{j<i} L_ij (x_j − m_j) / L_ii, shape (N,), in float64."""
        position = len(self.fed) - 1
        before = torch.stack(self.fed[1:]) if position else torch.stack(self.fed)[:0]
        said = self.factor[position, :position] @ before
        return self.model.mean[position].double() - said * self.scale

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns log ν_u(u_i) + log L_ii."""
        return self.inner.log_prob(self._u(x)) - self.scale.log().to(x.dtype)

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(U_i ≤ u_i)."""
        return self.inner.cdf(self._u(x))

    def quantile(self, u: Tensor) -> Tensor:
        """Returns loc + scale times the quantile of u_i."""
        found = self.inner.quantile(u)
        return (self.loc + self.scale * found.double()).to(u.dtype)

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns False for all values: the columns are real."""
        return torch.zeros_like(x, dtype=torch.bool)

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column."""
        self.inner.feed(self._u(x))
        position = len(self.fed) - 1
        self.fed.append(x.double() - self.model.mean[position].double())

    def _u(self, x: Tensor) -> Tensor:
        return ((x.double() - self.loc) / self.scale).to(x.dtype)
