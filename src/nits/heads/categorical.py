"""A column of categories: the probabilities of a softmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks
from nits.heads.distribution import CategoricalColumn
from nits.heads.head import Given, Head
from nits.pnn.initial import Line


@dataclass(frozen=True)
class Categorical(Head):
    """A column with values 0 … levels − 1 that have no order; the network reads them one-hot.

    >>> import nits, torch
    >>> model = nits.NITS.independent([nits.heads.Categorical(3)])
    >>> round(model.log_prob(torch.arange(3.0)[:, None]).exp().sum().item(), 5)
    1.0
    """

    levels: int
    optional: bool = False

    def __post_init__(self) -> None:
        checks.levels(self.levels)

    @property
    def low(self) -> float:  # type: ignore[override]
        """Half a level below the first."""
        return -0.5

    @property
    def high(self) -> float:  # type: ignore[override]
        """Half a level above the last."""
        return self.levels - 0.5

    @property
    def knots(self) -> int:  # type: ignore[override]
        """Categories have no hats."""
        return 0

    @property
    def weights(self) -> int:
        """A logit per level."""
        return self.levels

    @property
    def read(self) -> int:
        """A feature per level, so that the first layer of the network is an embedding."""
        return self.levels

    @property
    def kind(self) -> tuple[object, ...]:
        """Categorical heads with the same number of levels are evaluated together."""
        return ("categorical", self.levels)

    @property
    def discrete(self) -> bool:
        """Whether values are integers: they are."""
        return True

    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns log P(x) = log softmax(θ)_x."""
        return self._at(given.theta.log_softmax(-2), x)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer in 0 … levels − 1."""
        return (x >= 0) & (x < self.levels) & (x == x.floor())

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns the probability of the levels before x, plus half of that of x."""
        share = given.theta.softmax(-2)
        return self._at(share.cumsum(-2) - share / 2, x)

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns the probability of the levels up to ⌊x⌋."""
        found = self._at(given.theta.softmax(-2).cumsum(-2), x.floor())
        found = found.masked_fill(x < 0, 0.0).masked_fill(x >= self.levels - 1, 1.0)
        return found.masked_fill(torch.isnan(x), torch.nan)

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the first level k with P(X ≤ k) ≥ u."""
        below = given.theta.softmax(-2).cumsum(-2)[..., :-1, :]
        found = (below < u.unsqueeze(-2)).sum(-2).to(u.dtype)
        return found.masked_fill(torch.isnan(u), torch.nan)

    def features(self, x: Tensor) -> Tensor:
        """The level of x one-hot, scaled to the size of an ordinary input."""
        level = torch.arange(self.levels, device=x.device).view(-1, *(1 for _ in x.shape))
        found: Tensor = (x == level).to(x.dtype) * self.levels**0.5 + 0 * x
        return found

    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> CategoricalColumn:
        """Returns the distribution over levels with logits theta."""
        return CategoricalColumn(self, theta, low, high)

    def initial(self, x: Tensor, line: Line | None = None) -> Tensor:
        """Returns the logarithms of the levels' shares, with half a count added to each level."""
        counts = torch.bincount(self._index(x), minlength=self.levels).to(x.dtype) + 0.5
        return torch.log(counts / counts.sum())

    def _index(self, x: Tensor) -> Tensor:
        return torch.nan_to_num(x).clamp(0, self.levels - 1).long()

    def _at(self, table: Tensor, x: Tensor) -> Tensor:
        """Returns the entries of a table, one per level, at levels x; NaN stays NaN."""
        index = self._index(x).unsqueeze(-2)
        found = table.expand(*table.shape[:-1], x.shape[-1]).gather(-2, index).squeeze(-2)
        return found.masked_fill(torch.isnan(x), torch.nan)
