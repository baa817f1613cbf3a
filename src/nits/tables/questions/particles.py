"""Particles that walk a joint density, column by column, under conditions.

A given value multiplies a particle's weight by its probability or density. A condition multiplies
it by the mass of the event, inside which the value is drawn. Any other column is drawn from its
conditional distribution. So the mean of the weights is an unbiased estimate of the probability, or
density, of all that is given: the GHK simulator of econometrics, with systematic resampling where
the weights have become uneven.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from nits.model.density import Density
from nits.model.stacked import Stacked
from nits.model.steps import Steps
from nits.tables.questions.laws import Drawn
from nits.tables.questions.query import Query

PLAIN = 0.1
"""Share of draws from the model itself where a companion proposes the others, so that no draw
counts for more than ten."""

RESAMPLED_BELOW = 0.5
"""Effective share of the particles below which they are resampled."""


class Shape(NamedTuple):
    """How many particles there are: rows × batches × size, in this order."""

    rows: int
    batches: int
    size: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.rows * self.batches * self.size


class Walk:
    """Particles of one density, or of several networks of one shape, on their way through columns.

    member: Which of several networks each belongs to; None of a lone density.
    log_weights: Shape (R, B, size), in float64.
    effective: The least effective share of the particles on the way, shape (R, B).
    ancestor: Which particle of the start each goes back to; those that go back to the same one have
        the same values up to where they were resampled.
    """

    def __init__(
        self,
        density: Density | Stacked,
        query: Query,
        shape: Shape,
        generator: torch.Generator,
        member: Tensor | None = None,
    ) -> None:
        """Starts particles.

        member: Which of several networks those of a batch belong to, shape (size,).
        """
        self.density, self.query, self.shape = density, query, shape
        self.generator = generator
        self.order: list[int] = density.order.tolist()
        self.row = torch.arange(shape.rows).repeat_interleave(shape.batches * shape.size)
        self.member = None if member is None else member.repeat(shape.rows * shape.batches)
        self.u = points(shape, len(self.order), density.like, generator)
        self.log_weights = torch.zeros(shape, dtype=torch.float64)
        self.effective = torch.ones(shape.rows, shape.batches, dtype=torch.float64)
        self.ancestor = torch.arange(shape.total)
        self.fed: list[Drawn] = []
        self.proposed_to = self._proposed_to()
        self.steps, self.proposal = self._started()

    @property
    def rank(self) -> int:
        """How many columns the particles have passed."""
        return len(self.fed)

    def _proposed_to(self) -> int:
        """Returns up to which column a companion proposes: those before the last given one."""
        companion = self.query.companion
        if companion is None or companion.order.tolist() != self.order:
            return 0
        return self.query.told(self.order)

    def _started(self) -> tuple[Steps, Steps | None]:
        """Returns the density's steps, and those of the companion if it proposes."""
        query, n = self.query, len(self.row)
        about = None if query.context is None else query.context[self.row]
        if isinstance(self.density, Stacked):
            member = torch.zeros(n, dtype=torch.long) if self.member is None else self.member
            steps: Steps = self.density.steps(member, about)
        else:
            steps = self.density.steps(n, about)
        if query.companion is None or self.rank >= self.proposed_to:
            return steps, None
        told = query.numbers[self.row], query.given[self.row]
        return steps, query.companion.steps(n, *told, about)

    def to(self, rank: int) -> Walk:
        """Walks on until so many columns are passed; returns itself."""
        last = min(rank, self.query.last(self.order))
        while self.rank < rank:
            self.step()
            if self.rank < last and self.rank > self.query.leading(self.order):
                self._even()
        return self

    def step(self) -> None:
        """Passes one column."""
        drawn, added = self._drawn(self.rank)
        self.log_weights = self.log_weights + added.reshape(self.shape)
        self.feed(drawn)

    def drawn(self, rank: int) -> Drawn:
        """Returns the values of a column that was passed, or draws those of the next one."""
        return self.fed[rank] if rank < self.rank else self._drawn(rank)[0]

    def feed(self, drawn: Drawn) -> None:
        """Takes the values of the next column."""
        self.steps.feed(drawn.numbers)
        self.fed.append(drawn)
        if self.rank >= self.proposed_to:
            self.proposal = None
        if self.proposal is not None:
            self.proposal.feed(drawn.numbers)

    def _drawn(self, rank: int) -> tuple[Drawn, Tensor]:
        """Returns the values of the next column, and what they add to the log-weights."""
        i = self.order[rank]
        here = self.query.given[:, i]
        if bool(here.all()):
            return self._told(i)
        u = self.u[:, rank].repeat(self.shape.rows)
        added, drawn = self._inside(i, u)
        if not bool(here.any()):
            return drawn, added
        told, density = self._told(i)
        at = here[self.row]
        both = (torch.where(at, a, b) for a, b in zip(told, drawn, strict=True))
        return Drawn(*both), torch.where(at, density, added)

    def _inside(self, i: int, u: Tensor) -> tuple[Tensor, Drawn]:
        """Draws values of a column that is not given; returns what they add to the log-weights."""
        law, event = self.query.laws[i], self.query.events.get(i)
        coins = torch.rand(len(u), generator=self.generator, dtype=torch.float64)
        mass, drawn = law.inside(self.steps, event, u, coins)
        if self.proposal is None:
            return mass, drawn
        other_mass, other = law.inside(self.proposal, event, u, coins)
        plain = torch.rand(len(u), generator=self.generator) < PLAIN
        numbers, tails = (torch.where(plain, a, b) for a, b in zip(drawn, other, strict=True))
        # With p and q cut to the event, a draw from εp + (1 − ε)q counts p / (εp + (1 − ε)q).
        ahead = self.proposal.log_prob(numbers).double() - self.steps.log_prob(numbers).double()
        side = tails.nan_to_num().sign().to(torch.int8)
        beyond = law.log_beyond(self.proposal, side) - law.log_beyond(self.steps, side)
        ahead = torch.where(torch.isnan(tails), ahead, beyond)
        parts = [math.log(PLAIN) - mass, math.log(1 - PLAIN) + ahead - other_mass]
        return -torch.logaddexp(*parts), Drawn(numbers, tails)

    def _told(self, i: int) -> tuple[Drawn, Tensor]:
        """Returns the given values of a column, and their log-probabilities."""
        query = self.query
        numbers, log_prob, fixed, side = (
            t[:, i][self.row] for t in (query.numbers, query.log_prob, query.fixed, query.side)
        )
        model = self.steps.log_prob(numbers).double()
        beyond = query.laws[i].log_beyond(self.steps, side)
        added = torch.where(fixed, log_prob + beyond, model + log_prob)
        return Drawn(numbers, torch.full_like(numbers, torch.nan)), added

    def _even(self) -> None:
        """Resamples the particles of groups whose weights have become uneven.

        Not while a companion proposes: it knows what is given later, and the weights do not yet, so
        that they are least where the proposals are best.
        """
        if self.proposal is not None:
            return
        share = effective(self.log_weights)
        self.effective = torch.minimum(self.effective, share)
        uneven = share < RESAMPLED_BELOW
        if self.shape.size < 2 or not bool(uneven.any()):
            return
        chosen = systematic(self.log_weights, self.generator)
        own = torch.arange(self.shape.size).expand(self.shape)
        index = torch.where(uneven.unsqueeze(-1), chosen, own)
        first = torch.arange(0, self.shape.total, self.shape.size).reshape(*self.shape[:2], 1)
        mean = self.log_weights.logsumexp(-1, keepdim=True) - math.log(self.shape.size)
        even = torch.where(uneven.unsqueeze(-1), mean.expand(self.shape), self.log_weights)
        self.select((first + index).flatten())
        self.log_weights = even

    def select(self, index: Tensor) -> None:
        """Goes on with some of the particles, in their order: the density is fed them anew."""
        fed = [Drawn(*(part[index] for part in drawn)) for drawn in self.fed]
        self.row, self.ancestor = self.row[index], self.ancestor[index]
        self.member = None if self.member is None else self.member[index]
        self.fed = []
        self.steps, self.proposal = self._started()
        for drawn in fed:
            self.feed(drawn)


@lru_cache(maxsize=32)
def _sobol(size: int, dimensions: int) -> Tensor:
    engine = torch.quasirandom.SobolEngine(dimensions)
    return engine.draw(size, dtype=torch.float64)


def points(shape: Shape, dimensions: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """Returns Sobol points, moved by a random shift in each batch, shape (B · size, dimensions)."""
    shifts = torch.rand(shape.batches, 1, dimensions, dtype=torch.float64, generator=generator)
    found = (_sobol(shape.size, dimensions) + shifts) % 1.0
    eps = torch.finfo(like.dtype).eps
    return found.flatten(0, 1).to(like).clamp(eps / 4, 1 - eps)


def effective(log_weights: Tensor) -> Tensor:
    """Returns (Σ w)² / Σ w² over the number of weights in the last dimension; 0 if all are 0."""
    top = log_weights.amax(-1, keepdim=True)
    w = (log_weights - top.masked_fill(top == -torch.inf, 0.0)).exp()
    squares = (w * w).sum(-1)
    return torch.where(squares > 0, w.sum(-1) ** 2 / squares, 0.0) / log_weights.shape[-1]


def systematic(log_weights: Tensor, generator: torch.Generator, count: int | None = None) -> Tensor:
    """Draws positions with probabilities as the weights, by one random number for each group.

    log_weights: Shape (*, size).
    count: How many are drawn, by default as many as there are; the result has shape (*, count).
    """
    size = log_weights.shape[-1] if count is None else count
    top = log_weights.amax(-1, keepdim=True)
    w = (log_weights - top.masked_fill(top == -torch.inf, 0.0)).exp()
    reach = w.cumsum(-1)
    start = torch.rand(*log_weights.shape[:-1], 1, dtype=torch.float64, generator=generator)
    sought = (torch.arange(size, dtype=torch.float64) + start) / size * reach[..., -1:]
    found = torch.searchsorted(reach, sought, right=True)
    return found.clamp(max=log_weights.shape[-1] - 1)
