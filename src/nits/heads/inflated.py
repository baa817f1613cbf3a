"""A column of integers of which some have a probability of their own: zeros, caps, "missing"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks
from nits.heads import search
from nits.heads.cells import Cells
from nits.heads.head import Given, Head, moved
from nits.heads.inflated_distribution import InflatedColumn
from nits.heads.integer import Integer
from nits.pnn.initial import Line


@dataclass(frozen=True)
class Inflated(Head):
    """Integers k with the probabilities of another head, and some with more of their own.

        P(k) = Σ_a p_a [k = a] + p P_rest(k),    p = 1 − Σ_a p_a                            (27)

    rest: The head of the integers that have none of their own.
    values: The integers a. Those outside the range of the rest have p_a alone, such as −1 for a
        missing value.

    >>> import nits
    >>> counts = nits.heads.Inflated(nits.heads.Integer(least=0), values=(0,))
    >>> nits.NITS.independent([counts]).sample(5).shape
    torch.Size([5, 1])
    """

    rest: Cells | Integer
    values: tuple[float, ...]
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", checks.atoms(self.values, whole=True))

    @property
    def low(self) -> float:  # type: ignore[override]
        """The lower end of the rest, on the scale of its PNN."""
        return self.rest.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """The upper end of the rest, on the scale of its PNN."""
        return self.rest.high

    @property
    def knots(self) -> int:  # type: ignore[override]
        """Those of the rest."""
        return self.rest.knots

    @property
    def weights(self) -> int:
        """A logit per value, one for the rest, and the weights of the rest."""
        return len(self.values) + 1 + self.rest.weights

    @property
    def read(self) -> int:
        """What is read of the rest, and one flag per value."""
        return self.rest.read + len(self.values)

    @property
    def kind(self) -> tuple[object, ...]:
        """Heads with the same values and rests of one kind are evaluated together."""
        return ("inflated", self.values, *self.rest.kind)

    @property
    def discrete(self) -> bool:
        """Whether values are integers: they are."""
        return True

    def _parts(self, given: Given) -> tuple[Tensor, Given]:
        """Returns the log-shares of the values and the rest, shape (*, K + 1, N), and the rest."""
        logits, theta = given.theta.split([len(self.values) + 1, self.rest.weights], -2)
        return logits.log_softmax(-2), given._replace(theta=theta)

    def _table(self, x: Tensor) -> Tensor:
        """Returns the values, shape (K, 1), in the dtype of x."""
        return torch.tensor(self.values, dtype=x.dtype, device=x.device).unsqueeze(-1)

    def _is_value(self, x: Tensor) -> Tensor:
        """Returns whether x, shape (*, N), equals each value, shape (*, K, N)."""
        return x.unsqueeze(-2) == self._table(x)

    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns the logarithm of (27)."""
        log_share, rest = self._parts(given)
        here = self._is_value(x)
        own = torch.where(here, log_share[..., :-1, :], 0.0).sum(-2)
        covered = self.rest.possible(x, given.low, given.high)
        other = log_share[..., -1, :] + self.rest.log_prob_inside(rest, self._clamped(x))
        both = torch.where(covered, torch.logaddexp(own, other), own)
        return torch.where(here.any(-2), both, other)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is one of the values, or possible under the rest."""
        return self._is_value(x).any(-2) | self.rest.possible(x, low, high)

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X < x) + P(X = x) / 2."""
        return (self.cdf(given, x - 1) + self.cdf(given, x)) / 2

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns the probability of the rest up to x, plus that of the values up to x."""
        return search.cdf(self.rest, self._jumps(given), x)

    def _jumps(self, given: Given) -> search.Jumps:
        log_share, rest = self._parts(given)
        share = log_share.exp()
        before = torch.cat([torch.zeros_like(share[..., :1, :]), share[..., :-1, :]], -2)
        values = self._table(share).squeeze(-1)
        return search.Jumps(values, before.cumsum(-2), share[..., -1, :], rest)

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the least x with P(X ≤ x) ≥ u."""
        with torch.no_grad():
            return search.least(self.rest, self._jumps(given), u)

    def _clamped(self, x: Tensor) -> Tensor:
        """Returns x, or the nearest integer of the rest."""
        return x.clamp(self.rest.least, self.rest.greatest)

    def features(self, x: Tensor) -> Tensor:
        """What is read of the nearest integer of the rest, and one flag per value."""
        flags = self._is_value(x).movedim(-2, 0).to(x.dtype)
        return torch.cat([self.rest.features(self._clamped(x)), flags])

    @property
    def reading_ends(self) -> tuple[float, float]:
        """Those of the rest."""
        return self.rest.reading_ends

    def hat_values(self, x: Tensor) -> Tensor:
        """The integers that have no probability of their own, as they are read."""
        return self.rest.hat_values(self._others(x))

    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> InflatedColumn:
        """Returns the distribution with weights theta."""
        return InflatedColumn(self, theta, low, high)

    @property
    def followers(self) -> slice:
        """Those of the rest, after the logits."""
        return moved(self.rest.followers, len(self.values) + 1)

    def placed(self, x: Tensor) -> Tensor:
        """Returns points of the rest, and NaN for the values."""
        own = self._is_value(x).any(-2)
        return self.rest.placed(self._clamped(x).masked_fill(own, torch.nan))

    def initial(self, x: Tensor, line: Line | None = None) -> Tensor:
        """Returns shares by which each value has its frequency, and weights that follow the rest.

        The rest follows the other integers. It has q_a at a value, so that p_a = f_a − p q_a for
        frequencies f_a, and p = (1 − Σ_a f_a) / (1 − Σ_a q_a). Half a count is added to each.
        """
        others, here = self._rest(x), self._is_value(x)
        k = self._clamped(x[others])
        theta = self.rest.initial(k, None if line is None else line.of(others))
        counts = here.sum(-1).to(x.dtype)
        expected = self._rest_at_values(self.rest.initial(k))
        rest = ((~here.any(-2)).sum() + 0.5) / (1 - expected.sum()).clamp_min(0.1)
        own = (counts - rest * expected).clamp_min(0.0) + 0.5
        shares = torch.cat([own, rest.reshape(1)])
        return torch.cat([torch.log(shares / shares.sum()), theta])

    def _rest_at_values(self, theta: Tensor) -> Tensor:
        """Returns P_rest of each value, shape (K,), 0 of those outside, for weights (P,)."""
        d = self.rest.distribution(theta, self.low, self.high)
        return d.log_prob(self._table(theta).squeeze(-1)).exp()

    def _others(self, x: Tensor) -> Tensor:
        """Returns the integers of the rest."""
        return self._clamped(x[self._rest(x)])

    def _rest(self, x: Tensor) -> Tensor:
        """Returns which integers are none of the values, or all if fewer than two are left."""
        rest = ~self._is_value(x).any(-2)
        return rest if int(rest.sum()) > 1 else torch.ones_like(rest)
