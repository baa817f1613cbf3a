"""A mixture of joint densities: several models of the same columns, such as one per seed.

    ν(x) = Σ_k w_k ν_k(x)                                                                    (16)

Where all members model the columns in the same order, each conditional is a mixture too, whose
weights depend on the columns before:

    ν(x_i | x_<i) = Σ_k w_k(x_<i) ν_k(x_i | x_<i),    w_k(x_<i) ∝ w_k Π_{j<i} ν_k(x_j | x_<j)  (26)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from nits import checks
from nits.model import persistence
from nits.model.density import Density
from nits.model.mixed import MixedDistribution, MixedSteps, log_sum
from nits.model.stacked import Stacked, alike
from nits.model.teams import Teams
from nits.pnn.random import another, private_generator
from nits.weights.allowance import Allowance

if TYPE_CHECKING:
    from nits.model.joint import NITS


class Mixture(Density):
    """Equation (16): an average of exact densities is an exact density.

    models: Densities of the same columns.
    weights: A positive number for each, equal by default. They are normalized to sum to one.

    >>> import nits, torch
    >>> pair = nits.Mixture([nits.NITS.mlp(3, hidden=16), nits.NITS.independent(3)], weights=[3, 1])
    >>> pair.log_prob(torch.zeros(2, 3)).shape, pair.sample(4).shape
    (torch.Size([2]), torch.Size([4, 3]))
    """

    logits: Tensor

    def __init__(self, models: Sequence[Density], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        checks.alike([(model.columns, model.context_features) for model in models])
        shares = torch.tensor(checks.shares(weights, len(models)), dtype=torch.float64)
        self.models = nn.ModuleList(models)
        self.heads = models[0].heads
        self.register_buffer("logits", shares.log().to(models[0].like))

    @property
    def log_weights(self) -> Tensor:
        """Log w_k, shape (K,), normalized in the dtype of the mixture."""
        return self.logits.log_softmax(0)

    @property
    def members(self) -> list[Density]:
        """The densities that are mixed."""
        return [model for model in self.models if isinstance(model, Density)]

    @property
    def context_features(self) -> int:
        """C, the number of features of the context; 0 if there is none."""
        return self.members[0].context_features

    @property
    def has_one_order(self) -> bool:
        """Whether all members model the columns in the same order."""
        first, *others = (member.order for member in self.members)
        return all(torch.equal(first, other) for other in others)

    @property
    def order(self) -> Tensor:
        """The columns in the order in which all members model them, shape (D,)."""
        if not self.has_one_order:
            raise ValueError(
                "the members of a mixture must model the columns in the same order for this, "
                "but their orders differ; use log_prob, or sample without given or quasi."
            )
        return self.members[0].order

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of inputs and outputs."""
        return self.members[0].like

    @property
    def weights_per_row(self) -> int:
        """Number of PNN weights evaluated for a row."""
        return sum(member.weights_per_row for member in self.members)

    @property
    def stepped_at_once(self) -> int:
        """Most rows that `steps` has memory for."""
        return min(member.stepped_at_once for member in self.members)

    def log_prob(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns log ν(x), equation (16): −inf outside every support, NaN for NaN."""
        parts = [member.log_prob(x, context, withheld) for member in self.members]
        return log_sum(torch.stack(parts) + self.log_weights.unsqueeze(1))

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term of log ν(x), shape (N, D), by equation (26)."""
        parts = [member.log_prob_per_column(x, context, withheld) for member in self.members]
        return self.mixed(torch.stack(parts))

    def mixed(self, shares: Tensor) -> Tensor:
        """Returns each column's term of log ν(x), shape (N, D), from those of the members.

        shares: Shape (K, N, D), columns as in x.
        """
        return log_sum(torch.add(*self._with_weights(shares)))[:, self.order.argsort()]

    def _with_weights(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the members' terms and log w_k(x_<i), equation (26), both in modelling order.

        shares: The members' terms of log ν_k(x), shape (K, N, D), columns as in x.
        """
        ordered = shares[:, :, self.order]
        told = self._told(ordered).cumsum(2)
        first = self._first_weights()
        sums = torch.cat([torch.zeros_like(told[:, :, :1]), told[:, :, :-1]], 2) + first
        # Where the columns before are impossible under all members, the weights stay as they were.
        sums = torch.where((sums == -torch.inf).all(0), first, sums)
        return ordered, sums.log_softmax(0)

    def _first_weights(self) -> Tensor:
        """Returns log w_k, shape (K, 1, 1) or (K, 1, D): of each column in modelling order."""
        return self.log_weights[:, None, None]

    def _told(self, shares: Tensor) -> Tensor:
        """Returns what the members' terms count for in the weights of later columns."""
        return shares

    def _weights(self, x: Tensor, context: Tensor | None) -> Tensor:
        """Returns log w_k(x_<i), shape (K, N, D), columns as in x."""
        parts = [member.log_prob_per_column(x, context) for member in self.members]
        return self._with_weights(torch.stack(parts))[1][:, :, self.order.argsort()]

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        weights = self._weights(x, context)
        each = [member.conditionals(x, context) for member in self.members]
        columns = zip(*each, weights.unbind(2), strict=True)
        return [MixedDistribution(list(parts), about) for *parts, about in columns]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""
        weights = self._weights(x, context)
        parts = [member.to_uniform(x, context) for member in self.members]
        return (weights.exp() * torch.stack(parts)).sum(0).clamp(0, 1)

    def steps(self, n: int, context: Tensor | None = None) -> MixedSteps:
        """Starts n rows, column by column."""
        weights = self.log_weights.unsqueeze(1).expand(-1, n)
        return MixedSteps(Teams(self.members, n, context), weights)

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support of some member, shape (N,)."""
        return torch.stack([member.possible(x) for member in self.members]).any(0)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the members' weights from which training on rows like x starts."""
        for member in self.members:
            member.start_from(x, context)

    def reseed(self, seed: int | None) -> None:
        """Seeds the members, each differently."""
        for k, member in enumerate(self.members):
            member.reseed(None if seed is None else another(seed, k))

    def description(self) -> dict[str, Any]:
        """Returns the members' descriptions; the mixture weights are saved as a tensor."""
        return {"kind": "mixture", "members": [member.description() for member in self.members]}

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns a mixture like the one whose `description` this is, if it is allowed so much."""
        return cls([persistence.built(member, allowance) for member in about["members"]])

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows, shape (n, D), each from a random member; see `Density.sample`."""
        if quasi:
            return super().sample(n, context, generator, quasi=True, given=given)
        checks.positive("n", n)
        context = checks.one_for_all(context, n)
        context = checks.context(context, n, self.context_features, self.like)
        source = private_generator(generator, self.like.device)
        kept = None if given is None else given.to(self.like).expand(n, -1)
        with torch.no_grad():
            chosen = torch.multinomial(self._shares(n, context, kept), 1, generator=source)
            rows = self.like.new_empty(n, self.columns)
            for some, here, which in self._chosen(chosen[:, 0]):
                about, values = (None if t is None else t[here] for t in (context, kept))
                if isinstance(some, Stacked):
                    rows[here] = some.sample(which, about, source, values)
                else:
                    rows[here] = some.sample(len(here), about, source, given=values)
        return rows

    def _chosen(self, chosen: Tensor) -> Iterator[tuple[Density | Stacked, Tensor, Tensor]]:
        """Yields members, networks of one shape together, the rows that chose them, and which.

        chosen: The member of each row, shape (N,).
        """
        apart = torch.is_grad_enabled()  # networks that are stacked record no gradients
        each = [[k] for k in range(len(self.members))]
        for places in each if apart else alike(self.members):
            found = torch.tensor(places, device=chosen.device)
            here = torch.isin(chosen, found).nonzero().flatten()
            if len(here):
                some = [self.members[k] for k in places]
                together = some[0] if len(some) == 1 else Stacked(cast("list[NITS]", some))
                yield together, here, torch.searchsorted(found, chosen[here])

    def filled(
        self,
        u: Tensor,
        given: Tensor,
        context: Tensor | None = None,
        within: Sequence[tuple[float, float]] | None = None,
    ) -> Tensor:
        """Returns rows at probabilities u in which some values are set; see `Density.filled`.

        Each row is drawn from one member up to a set value, by which another is then chosen.
        """
        if within is not None:
            return super().filled(u, given, context, within)
        ordered = given[:, self.order]
        known = ~torch.isnan(ordered)
        places = torch.arange(self.columns, device=u.device)
        fixed = known.cumprod(1).sum(1)  # the first so many columns are settled
        rows = self._from_members(u, self._first(given, fixed), context)
        while True:
            later = (known & (places >= fixed.unsqueeze(1))).any(1).nonzero().flatten()
            if not len(later):
                return rows
            ahead = (known & (places >= fixed.unsqueeze(1)))[later]
            fixed[later] = ahead.long().argmax(1) + 1
            rows[later] = torch.where(torch.isnan(given[later]), rows[later], given[later])
            told = self._first(rows[later], fixed[later])
            about = None if context is None else context[later]
            rows[later] = self._from_members(u[later], told, about)

    def _first(self, rows: Tensor, count: Tensor) -> Tensor:
        """Returns the first columns in modelling order of each row, and NaN for the others."""
        ranks = self.order.argsort()
        return rows.masked_fill(ranks >= count.unsqueeze(1), torch.nan)

    def _from_members(self, u: Tensor, given: Tensor, context: Tensor | None) -> Tensor:
        """Draws each row from one member, which the first column that is drawn chooses.

        A probability that falls into a member's share is spread over (0, 1) again.
        """
        known = ~torch.isnan(given[:, self.order])
        column = self.order[known.sum(1).clamp(max=self.columns - 1)]
        every = torch.arange(len(u), device=u.device)
        shares = self._shares(len(u), context, given if bool(known.any()) else None)
        reach = shares.cumsum(1)
        here = u[every, column] * reach[:, -1]
        chosen = (here.unsqueeze(1) > reach[:, :-1]).sum(1)
        inner = (here - (reach - shares)[every, chosen]) / shares[every, chosen]
        eps = torch.finfo(u.dtype).eps
        u = u.index_put((every, column), inner.clamp(eps / 4, 1 - eps))
        rows = torch.empty_like(u)
        for some, at, which in self._chosen(chosen):
            about = None if context is None else context[at]
            if isinstance(some, Stacked):
                rows[at] = some.filled(u[at], given[at], which, about)
            else:
                rows[at] = some.filled(u[at], given[at], about)
        return rows

    def _shares(self, n: int, context: Tensor | None, given: Tensor | None) -> Tensor:
        """Returns w_k(x_<i), where x_<i are the given columns of each row, shape (n, K)."""
        if given is None:
            return self.log_weights.exp().expand(n, -1)
        checks.given(given, given, self.order, self.like)
        drawn = torch.isnan(given)
        values = given.masked_fill(drawn, 0.0)  # any: what comes later does not matter
        parts = [member.log_prob_per_column(values, context) for member in self.members]
        told = torch.stack(parts).masked_fill(drawn, 0.0).sum(2)
        return (told + self.log_weights.unsqueeze(1)).softmax(0).t()
