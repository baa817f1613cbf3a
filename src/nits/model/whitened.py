"""NITS on what straight lines leave over, for columns that follow one another closely, such as pixels.

With L lower triangular in the order in which columns are modelled,

    u = L (x − m),    log ν(x) = log ν_u(u) + Σ_i log L_ii                                  (18)

u_i needs x_1 … x_i only, so the product (15) over u is one over x. Any L and m give an exact
density; those that follow the data make the columns of u uncorrelated and of unit deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits.heads import Head
from nits.model.joint import NITS
from nits.pnn.affine import Affine
from nits.weights import WeightModel

RIDGE = 1e-6
"""What is added to the variances, in parts of them, before L is found: columns may depend on one another."""


class Whitened(NITS):
    """A NITS whose heads describe u, equation (18), and whose answers are about x; made as a NITS is.

    The weight model reads u, and so do the hats. All columns must be real ones without ends.
    """

    mean: Tensor
    factor: Tensor

    def __init__(
        self, heads: Sequence[Head] | int, weights: WeightModel, order: Sequence[int] | None = None
    ) -> None:
        super().__init__(heads, weights, order)
        for head in self.heads:
            if (
                head.kind[0] != "continuous"
                or head.optional
                or not head.low == -head.high == -math.inf
            ):
                raise ValueError(
                    f"whitened columns must be real ones without limits, atoms or holes, but one is {head}; "
                    "do without whitening."
                )
        self.register_buffer("mean", torch.zeros(self.columns))
        self.register_buffer("factor", torch.eye(self.columns))

    def described(self, x: Tensor) -> Tensor:
        """Returns u of rows x, in modelling order, shape (D, N)."""
        return super().described(self.whiten(x))

    def follow(self, x: Tensor) -> Tensor:
        """Sets m and L by rows x, shape (N, D), and the knots by the u they become."""
        ordered = x[:, self.order].double()
        covariance = torch.atleast_2d(torch.cov(ordered.t()))
        ridge = torch.diag(RIDGE * covariance.diagonal())
        identity = torch.eye(self.columns, dtype=torch.float64, device=x.device)
        factor = torch.linalg.solve_triangular(
            torch.linalg.cholesky(covariance + ridge), identity, upper=False
        )
        self.mean.copy_(ordered.mean(0))
        self.factor.copy_(factor)
        return super().follow(x)

    def whiten(self, x: Tensor) -> Tensor:
        """Returns u for rows x, shape (N, D), columns as in x; NaN from the first NaN on."""
        missing = torch.isnan(x[:, self.order]).cummax(1).values
        ordered = x[:, self.order].double() - self.mean.double()
        u = ordered.masked_fill(missing | torch.isinf(ordered), 0.0) @ self.factor.double().t()
        u = torch.where(torch.isinf(ordered), ordered, u).masked_fill(missing, torch.nan)
        return u.to(x.dtype)[:, self.order.argsort()]

    def colour(self, u: Tensor) -> Tensor:
        """Returns x with whiten(x) = u."""
        ordered = u[:, self.order].double().t()
        x: Tensor = torch.linalg.solve_triangular(self.factor.double(), ordered, upper=False)
        return (x.t() + self.mean.double()).to(u.dtype)[:, self.order.argsort()]

    @property
    def _log_scale(self) -> Tensor:
        """Logarithms of L_ii, shape (D,), columns as in x."""
        return self.factor.diagonal().log()[self.order.argsort()]

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Returns each column's share of log ν(x), shape (N, D), columns as in x."""
        x, context = self._checked(x, context)
        return super().log_prob_per_column(self.whiten(x), context, hidden) + self._log_scale

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of every column given the columns modelled before it, N rows each."""
        x, context = self._checked(x, context)
        u = self.whiten(x)
        scale = torch.exp(-self._log_scale)
        found = zip(super().conditionals(u, context), (x - scale * u).t(), scale, strict=True)
        return [Affine(base, at, by) for base, at, by in found]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns u, shape (N, D), with u_i = P(X_i ≤ x_i | columns before): the Rosenblatt transform."""
        x, context = self._checked(x, context)
        return super().to_uniform(self.whiten(x), context)

    def _inverse(
        self, u: Tensor, context: Tensor | None, kept: Tensor, *, differentiable: bool
    ) -> Tensor:
        """Returns rows at probabilities u, but for the values to keep."""
        drawn = super()._inverse(u, context, self.whiten(kept), differentiable=differentiable)
        return torch.where(torch.isnan(kept), self.colour(drawn), kept)
