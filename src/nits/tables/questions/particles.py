"""Particles that walk a joint density, column by column, under conditions.

A given value multiplies a particle's weight by its probability or density. A condition multiplies
it by the mass of the event, inside which the value is drawn. Any other column is drawn from its
conditional distribution. So the mean of the weights is an unbiased estimate of the probability, or
density, of all that is given: the GHK simulator of econometrics, with systematic resampling where
the weights have become uneven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from nits.model.density import Density
from nits.model.steps import Steps
from nits.tables.columns import Column
from nits.tables.questions.events import Event
from nits.tables.questions.laws import Drawn, Law

RESAMPLED_BELOW = 0.5
"""Effective share of the particles below which they are resampled."""


@dataclass(frozen=True)
class Query:
    """What is given, for each of R rows, in the columns' numbers.

    laws: The laws of the D columns.
    given: Which entries have a given value, shape (R, D).
    numbers: The numbers of those values, shape (R, D).
    log_prob: What is added to the model's log-probability of them, in float64, shape (R, D).
    fixed: Where it stands in its place, shape (R, D).
    events: Conditions by column, for the entries that have no given value.
    context: What the model reads of columns that it does not model, shape (R, C).
    """

    laws: tuple[Law, ...]
    given: Tensor
    numbers: Tensor
    log_prob: Tensor
    fixed: Tensor
    events: Mapping[int, Event]
    context: Tensor | None = None

    @classmethod
    def empty(cls, columns: Sequence[Column], rows: int, like: Tensor) -> Query:
        """Returns the question in which nothing is given."""
        shape = (rows, len(columns))
        return cls(
            tuple(Law(column) for column in columns),
            torch.zeros(shape, dtype=torch.bool),
            torch.full(shape, torch.nan, dtype=like.dtype),
            torch.zeros(shape, dtype=torch.float64),
            torch.zeros(shape, dtype=torch.bool),
            {},
        )

    @property
    def rows(self) -> int:
        """R, how many questions these are."""
        return len(self.given)

    def last(self, order: list[int]) -> int:
        """Returns how many columns of an order there are up to the last that has a condition."""
        told = self.given.any(0)
        ranks = [r for r, i in enumerate(order) if bool(told[i]) or i in self.events]
        return ranks[-1] + 1 if ranks else 0

    def leading(self, order: list[int]) -> int:
        """Returns how many columns of an order are given in all rows before the first that is not.

        Up to there nothing is drawn.
        """
        told = self.given.all(0)
        return next((r for r, i in enumerate(order) if not bool(told[i])), len(order))

    def take(self, rows: Tensor | slice) -> Query:
        """Returns the questions of some rows."""
        context = None if self.context is None else self.context[rows]
        return replace(
            self,
            given=self.given[rows],
            numbers=self.numbers[rows],
            log_prob=self.log_prob[rows],
            fixed=self.fixed[rows],
            context=context,
        )


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
    """Particles of one density on their way through its columns.

    log_weights: Shape (R, B, size), in float64.
    effective: The least effective share of the particles on the way, shape (R, B).
    """

    def __init__(
        self, density: Density, query: Query, shape: Shape, generator: torch.Generator
    ) -> None:
        self.density, self.query, self.shape = density, query, shape
        self.generator = generator
        self.order: list[int] = density.order.tolist()
        self.row = torch.arange(shape.rows).repeat_interleave(shape.batches * shape.size)
        self.u = points(shape, len(self.order), density.like, generator)
        self.log_weights = torch.zeros(shape, dtype=torch.float64)
        self.effective = torch.ones(shape.rows, shape.batches, dtype=torch.float64)
        self.fed: list[Drawn] = []
        self.steps = self._started()

    @property
    def rank(self) -> int:
        """How many columns the particles have passed."""
        return len(self.fed)

    def _started(self) -> Steps:
        context = self.query.context
        about = None if context is None else context[self.row]
        return self.density.steps(len(self.row), about)

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

    def _drawn(self, rank: int) -> tuple[Drawn, Tensor]:
        """Returns the values of the next column, and what they add to the log-weights."""
        i = self.order[rank]
        here = self.query.given[:, i]
        if bool(here.all()):
            return self._told(i)
        u = self.u[:, rank].repeat(self.shape.rows)
        event = self.query.events.get(i)
        if event is None:
            added = torch.zeros(len(u), dtype=torch.float64)
            drawn = self.query.laws[i].free(self.steps, u)
        else:
            added, drawn = self.query.laws[i].inside(self.steps, event, u)
        if not bool(here.any()):
            return drawn, added
        told, density = self._told(i)
        at = here[self.row]
        both = (torch.where(at, a, b) for a, b in zip(told, drawn, strict=True))
        return Drawn(*both), torch.where(at, density, added)

    def _told(self, i: int) -> tuple[Drawn, Tensor]:
        """Returns the given values of a column, and their log-probabilities."""
        query = self.query
        numbers, log_prob, fixed = (
            t[:, i][self.row] for t in (query.numbers, query.log_prob, query.fixed)
        )
        model = self.steps.log_prob(numbers).double()
        added = torch.where(fixed, log_prob, model + log_prob)
        return Drawn(numbers, torch.full_like(numbers, torch.nan)), added

    def _even(self) -> None:
        """Resamples the particles of groups whose weights have become uneven."""
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
        self.row = self.row[index]
        self.fed = []
        self.steps = self._started()
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
