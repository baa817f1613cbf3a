"""Random roles: what training sees of a network that answers any question, equation (32)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits.model.joint import NITS
from nits.model.roles import Roles
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.random import another
from nits.weights.allowance import Allowance

DRAWING = -2 % 2**32
"""The part of a step's randomness that roles are drawn from."""


class Shares(NamedTuple):
    """How often training draws which roles.

    joint: Share of the rows in which nothing is given.
    absent: Share of the other rows in which some columns that are not given are hidden from later
        ones; in the rest all columns are given or asked.
    alone: The same share of the rows in which nothing is given: columns of a few others, or of
        none, are learned from these.
    """

    joint: float = 0.2
    absent: float = 0.3
    alone: float = 0.7

    def draw(self, rows: int, columns: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Returns which entries are given and which are hidden, both of shape (rows, columns).

        The share of a row's columns that are given is uniform in (0, 1), as is that of hidden ones
        among the rest.
        """
        kind, hide, share, hidden_share = torch.rand(4, rows, 1, generator=source)
        some = kind >= self.joint
        given = (torch.rand(rows, columns, generator=source) < share) & some
        hidden = torch.rand(rows, columns, generator=source) < hidden_share
        return given, hidden & ~given & (hide < torch.where(some, self.absent, self.alone))


class RandomRoles(Wrapped):
    """What training sees of `Roles`: rows whose entries have random roles.

    Once `reseed` was called with a seed, rows get random roles when they are scored, the same ones
    after the same seed; without a seed, nothing is given and everything is asked, so that it is a
    joint density. What is said of an absent column is learned, too: it is only hidden from later
    ones. A value that is missing, NaN, is absent.

    roles: The network.
    shares: How often which roles are drawn.

    >>> import nits, torch
    >>> roles = nits.Roles.mlp(3, hidden=16, blocks=1)
    >>> learner, rows = nits.RandomRoles(roles), torch.randn(100, 3)
    >>> history = nits.fit(learner, rows, max_steps=5, progress=False)
    """

    kind = "roles"
    density: NITS

    def __init__(self, roles: Roles, shares: Shares | None = None) -> None:
        super().__init__(roles.density)
        self.shares = shares or Shares()
        self.source: torch.Generator | None = None
        self.part: tuple[int, int] | None = None

    def take_part(self, start: int, total: int | None) -> None:
        """Has roles and dropout be those of rows in a larger batch; see `Density.take_part`."""
        self.part = None if total is None else (start, total)
        super().take_part(start, total)

    @property
    def roles(self) -> Roles:
        """The network, which shares its weights with this one."""
        return Roles(self.density)

    @property
    def context_features(self) -> int:
        """The number of features besides those of the table's columns."""
        return self.roles.context_features

    def reseed(self, seed: int | None) -> None:
        """Seeds the roles and dropout; None for no random roles."""
        generator = torch.Generator()
        self.source = None if seed is None else generator.manual_seed(another(seed, DRAWING))
        super().reseed(seed)

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term, shape (N, D); 0 if it is given or missing."""
        x, context = self._checked(x, context)
        return self.density.log_prob_per_column(*self._in_roles(x, context, withheld))

    def forward(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns the sum of the terms without checking the rows, for training."""
        found: Tensor = self.density(*self._in_roles(x, context, withheld))
        return found

    def _in_roles(
        self, x: Tensor, context: Tensor | None, withheld: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns the rows without what is given, the context, and what is hidden from others."""
        if self.source is None:
            return x, self._nothing_given(x, context), withheld
        start, total = self.part or (0, len(x))
        drawn = self.shares.draw(total, self.columns, self.source)
        given, hidden = (role[start : start + len(x)].to(x.device) for role in drawn)
        told = self.roles.read(x, given, context)
        hidden = hidden if withheld is None else hidden | withheld
        return x.masked_fill(given, torch.nan), told, hidden

    def _nothing_given(self, x: Tensor, context: Tensor | None) -> Tensor:
        return self.roles.read(x, torch.zeros_like(x, dtype=torch.bool), context)

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        x, context = self._checked(x, context)
        return self.density.conditionals(x, self._nothing_given(x, context))

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""
        x, context = self._checked(x, context)
        return self.density.to_uniform(x, self._nothing_given(x, context))

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts n rows, with nothing given."""
        unknown = torch.full((n, self.columns), torch.nan).to(self.like)
        return self.density.steps(n, self._nothing_given(unknown, context))

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        return self.density.possible(x)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the knots by all values, and the weights by rows with random roles."""
        inner = self.density
        inner.reading.start_at(x.t()[self.order])
        known, told, hidden = self._in_roles(x, context)
        seen = known if hidden is None else known.masked_fill(hidden, torch.nan)
        with torch.no_grad():
            features = inner.reading(seen.t()[self.order])
            values = known.t()[self.order]
            inner.weights.start_from(inner.ordered, values, lambda _: features, told.t())

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns one like that whose `description` this is, if it is allowed so much."""
        return cls(Roles.described(about, allowance))
