"""Densities of 8-bit pixels with uniform noise: the continuous NITS-CONV, and the bound it gives.

A pixel k of 0 … 255 becomes z = (k + ε) / 256 with ε uniform on [0, 1). A density ν of z bounds the
probability of an image x of D pixels; the bound is tighter with more draws K of the noise:

    log P(x) ≥ E log ( (1/K) Σ_k ν(z_k) ) − D log 256                                      (19)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks
from nits.heads import Head
from nits.model.joint import NITS
from nits.weights import WeightModel

LEVELS = 256


class Dequantized(NITS):
    """A NITS whose heads describe z on [0, 1] and whose rows x are integers 0 … 255.

    `log_prob` draws fresh noise from torch's generator at every call: an estimate of the bound
    (19), K = 1.
    """

    def __init__(
        self, heads: Sequence[Head] | int, weights: WeightModel, order: Sequence[int] | None = None
    ) -> None:
        super().__init__(heads, weights, order)
        for head in self.heads:
            if head.kind[0] != "continuous" or head.optional or (head.low, head.high) != (0, 1):
                raise ValueError(
                    "dequantized columns must be continuous on [0, 1] without missing values, "
                    f"but one is {head}."
                )

    def noisy(self, x: Tensor) -> Tensor:
        """Returns z for pixels x, with fresh noise; other values become −1, which is impossible."""
        whole = (x == x.floor()) & (x >= 0) & (x < LEVELS)
        return ((x + torch.rand_like(x)) / LEVELS).masked_fill(~whole & ~torch.isnan(x), -1.0)

    def described(self, x: Tensor) -> Tensor:
        """Returns z of rows x, in modelling order, shape (D, N)."""
        return super().described(self.noisy(x))

    def bound(self, x: Tensor, context: Tensor | None = None, draws: int = 8) -> Tensor:
        """Returns the bound (19) on log P(x) in nats for rows x, shape (N, D), with K = draws."""
        checks.positive("draws", draws)
        found = torch.stack([self.log_prob(x, context) for _ in range(draws)])
        return torch.logsumexp(found, 0) - math.log(draws)

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Returns each column's share of log ν(z) − D log 256, shape (N, D), for one draw."""
        x, context = self._checked(x, context)
        return super().log_prob_per_column(self.noisy(x), context, hidden) - math.log(LEVELS)

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of every column's z given the columns before it, N rows each."""
        x, context = self._checked(x, context)
        return super().conditionals(self.noisy(x), context)

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform of z, shape (N, D)."""
        x, context = self._checked(x, context)
        return super().to_uniform(self.noisy(x), context)

    def _inverse(
        self, u: Tensor, context: Tensor | None, kept: Tensor, *, differentiable: bool
    ) -> Tensor:
        """Returns pixels at probabilities u, but for those to keep."""
        z = super()._inverse(u, context, self.noisy(kept), differentiable=differentiable)
        return torch.where(torch.isnan(kept), (z * LEVELS).floor().clamp(max=LEVELS - 1), kept)
