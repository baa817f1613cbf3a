"""A mixture in which the columns before tell less about the members than by Bayes' rule.

    ν(x_i | x_<i) = Σ_k w_k(x_<i) ν_k(x_i | x_<i)
    w_k(x_<i) ∝ w_ki Π_{j<i} ν_k(x_j | x_<j)^τ                                                  (48)

is an exact density for any τ from 0 to 1 and any weights w_ki. With τ = 1 and weights that are the
same in all columns it is equation (16): one member has made the whole row, which the columns before
give away, so that by the last columns most rows hear a single member. Networks that have learned
the same table err column by column, each on its own: with τ = 0 every column hears all members, and
errors cancel in each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from nits import checks
from nits.chunks import slices
from nits.model import persistence
from nits.model.density import Density
from nits.model.mixed import MixedSteps
from nits.model.mixture import Mixture
from nits.model.teams import Teams
from nits.weights.allowance import Allowance


class Tempered(Mixture):
    """Equation (48): a mixture of densities of the same columns in the same order.

    models, weights: As in `Mixture`.
    power: τ. Drawing a row takes as long as drawing one from each member.
    of_columns: Weights w_ki for each member and column, shape (K, D), in place of `weights`.

    >>> import nits, torch
    >>> pair = nits.Tempered([nits.NITS.mlp(3, hidden=16) for _ in range(2)], power=0.25)
    >>> pair.log_prob(torch.zeros(2, 3)).shape, pair.sample(4).shape
    (torch.Size([2]), torch.Size([4, 3]))
    """

    power: Tensor
    column_logits: Tensor

    def __init__(
        self,
        models: Sequence[Density],
        weights: Sequence[float] | None = None,
        power: float = 0.5,
        of_columns: Sequence[Sequence[float]] | None = None,
    ) -> None:
        shares = None if of_columns is None else _of_columns(of_columns, models)
        super().__init__(models, weights if shares is None else shares.mean(1).tolist())
        if not self.has_one_order:
            raise ValueError(
                "the members of a tempered mixture must model the columns in the same order, "
                "but their orders differ; use nits.Mixture."
            )
        if not 0 <= power <= 1:
            raise ValueError(
                f"power must be a number from 0, where columns tell nothing about the members, "
                f"to 1, Bayes' rule, but is {power}."
            )
        self.register_buffer("power", self.like.new_tensor(power))
        logits = (
            self.logits.unsqueeze(1).expand(-1, self.columns) if shares is None else shares.log()
        )
        self.register_buffer("column_logits", logits.to(self.like).clone())

    @property
    def stepped_at_once(self) -> int:
        """Most rows that `steps` has memory for: all members step at once."""
        return max(1, super().stepped_at_once // len(self.members))

    def log_prob(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns log ν(x), the sum of the columns' terms: −inf outside, NaN for NaN."""
        return self.log_prob_per_column(x, context, withheld).sum(-1)

    def steps(self, n: int, context: Tensor | None = None) -> TemperedSteps:
        """Starts n rows, column by column."""
        members = Teams(self.members, n, context)
        return TemperedSteps(members, self._first_weights(), n, self.power)

    def _told(self, shares: Tensor) -> Tensor:
        """Returns what the members' terms count for in the weights of later columns."""
        return counted(shares, self.power)

    def _first_weights(self) -> Tensor:
        """Returns log w_ki, shape (K, 1, D), in modelling order."""
        return self.column_logits.log_softmax(0)[:, self.order].unsqueeze(1)

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows, shape (n, D), each column from a random member; see `Density.sample`."""
        with torch.no_grad():
            u, context = self._uniform(n, context, generator, quasi=quasi)
            return self.filled(u, checks.given(given, u, self.order, self.like), context)

    def filled(
        self,
        u: Tensor,
        given: Tensor,
        context: Tensor | None = None,
        within: Sequence[tuple[float, float]] | None = None,
    ) -> Tensor:
        """Returns rows drawn by numbers u in which some values are set; see `Density.filled`."""
        if within is not None:
            return Density.filled(self, u, given, context, within)
        parts = [u.new_empty(0, self.columns)]
        for some in slices(len(u), self.stepped_at_once):
            steps = self.steps(len(u[some]), None if context is None else context[some])
            parts.append(steps.rows(self.order, u[some], given[some], found=steps.draw))
        return torch.cat(parts)

    def description(self) -> dict[str, Any]:
        """Returns the members' descriptions; weights and τ are saved as tensors."""
        return {**super().description(), "kind": "tempered"}

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns a mixture like the one whose `description` this is, if it is allowed so much."""
        return cls([persistence.built(member, allowance) for member in about["members"]])


class TemperedSteps(MixedSteps):
    """The next column of a tempered mixture.

    first: log w_ki, shape (K, 1, D), in modelling order.
    n: How many rows there are.
    """

    def __init__(self, members: Teams, first: Tensor, n: int, power: Tensor) -> None:
        self.first, self.power, self.position = first, power, 0
        self.told = first.new_zeros(len(members), n)
        super().__init__(members, self._weights())

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column, which tell about the members to the power τ."""
        if self.power > 0:
            self.told = self.told + self.power * self.members.each("log_prob", x)
        self.position += 1
        self.log_weights = self._weights()
        self.members.feed(x)

    def _weights(self) -> Tensor:
        """Returns log w_k(x_<i) of the rows, shape (K, N); of the last column once all are fed."""
        first = self.first[:, :, min(self.position, self.first.shape[2] - 1)]
        sums = first + self.told
        return torch.where((sums == -torch.inf).all(0), first, sums).log_softmax(0)


def _of_columns(weights: Sequence[Sequence[float]], models: Sequence[Density]) -> Tensor:
    """Returns weights of members in columns, shape (K, D), with sums one in each column."""
    shape = len(models), models[0].columns if models else 0
    right = len(weights) == shape[0] and all(len(each) == shape[1] for each in weights)
    if not right or not all(0 < w < math.inf for each in weights for w in each):
        raise ValueError(
            f"of_columns must be {shape[0]} lists, one per model, of {shape[1]} positive numbers, "
            "one per column, but are not; leave them out for weights that columns share."
        )
    found = torch.tensor(weights, dtype=torch.float64)
    return found / found.sum(0)


def counted(log_prob: Tensor, power: Tensor) -> Tensor:
    """Returns τ log ν, zero for τ = 0 whatever is impossible."""
    return log_prob * power if power > 0 else torch.zeros_like(log_prob)
