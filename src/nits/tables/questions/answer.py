"""What a model says under conditions: rows, probabilities and distributions of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nits import checks
from nits.tables import orders
from nits.tables.questions import asked, dependence, likelihood, rows, shares
from nits.tables.questions.ahead import Ahead
from nits.tables.questions.behind import Behind
from nits.tables.questions.cloud import PARTICLES, Cloud, members, walked
from nits.tables.questions.conditions import Conditions
from nits.tables.questions.dependence import Dependence
from nits.tables.questions.query import Query
from nits.tables.questions.results import Estimate, Found, Probabilities
from nits.tables.questions.single import OneColumn, refuse_no_quantiles
from nits.tables.questions.some_columns import Marginal
from nits.tables.validate import checked_levels

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


class Answer:
    """The distribution of a model's columns, given what is said about some of them.

    Columns that are neither given nor asked are left out. Where the given columns come first in
    the model's order, answers are exact; else they are estimates by particles, which carry a
    standard error and the effective number of particles, and are the same each time.

    conditions: What is given, by column.
    particles: How many particles there are.
    seed: Of the particles.
    """

    def __init__(
        self,
        estimator: NITSDensity,
        conditions: Conditions,
        *,
        particles: int = PARTICLES,
        seed: int = 0,
    ) -> None:
        self.estimator, self.conditions = estimator, conditions
        checks.positive("particles", particles)
        self.particles, self.seed = particles, seed
        self.query: Query = asked.query(estimator, conditions)
        self._cloud: Cloud | None = None

    def __repr__(self) -> str:
        told = [f"{name} {one}" for name, all_ in self.conditions.items() for one in all_]
        return f"<answers of a model given {' and '.join(told) or 'nothing'}>"

    def using(self, particles: int = PARTICLES, seed: int = 0) -> Answer:
        """Returns the same question to other particles: more are more precise, and slower."""
        return Answer(self.estimator, self.conditions, particles=particles, seed=seed)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Any:
        """Draws rows, as a table of the type that the model was fitted on, given columns included.

        Rows are drawn again from weighted particles, of which there are at least four for each.
        """
        checks.positive("n_samples", n_samples)
        seed = rows.seed_of(random_state)
        with torch.no_grad():
            drawn = rows.drawn(self.estimator, self.query, n_samples, seed)
        return rows.table(self.estimator, drawn, self.conditions, seed)

    def probability(self, event: Mapping[Any, Any] | str) -> Estimate:
        """Returns the probability of an event, such as "delay > 30 and carrier == 'UA'"."""
        told = asked.gathered(self.estimator, event)
        self._refuse_context(told)
        narrow = asked.narrowed(self.query, told)
        if narrow is None:
            return Estimate(0.0, 0.0, math.inf)
        with torch.no_grad():
            found = shares.probability(self._whole(), self._walked(narrow), narrow)
        return Estimate(*(float(field[0]) for field in found))

    def evidence(self) -> tuple[Tensor, Tensor]:
        """Returns log-estimates of the probability or density of what is given, shape (1, B).

        The second tensor is the effective number of particles, shape (1,).
        """
        return self._whole().log_evidence(), self._whole().ess()

    def _whole(self) -> Cloud:
        """Returns particles of what is given, the same each time."""
        if self._cloud is None:
            self._cloud = self._walked(self.query)
        return self._cloud

    def _walked(self, query: Query) -> Cloud:
        with torch.no_grad():
            return walked(self.estimator.model_, query, self.seed, total=self.particles)

    def _refuse_context(self, told: Conditions) -> None:
        for name in told:
            if name in self.estimator.context_schema_.names:
                raise ValueError(
                    f"{name!r} is given to this model and not modelled, so it cannot be asked."
                )

    def quantiles(
        self, column: str | int, levels: Sequence[float] | float = (0.05, 0.5, 0.95)
    ) -> Found:
        """Returns quantiles of a column's known values, shape (len(levels),)."""
        wanted, found = checked_levels(levels), self._column(column)
        refuse_no_quantiles(found.column)
        return found.quantiles(wanted)

    def cdf(self, column: str | int, value: Any) -> Estimate:
        """Returns the probability of a known value of a column at most as large."""
        return self._column(column).cdf(value)

    def mean(self, column: str | int) -> Estimate:
        """Returns the mean of a column's known values; a time for times."""
        return self._column(column).mean()

    def mode(self, column: str | int) -> Any:
        """Returns the most probable value of a column, or the one of greatest density."""
        return self._column(column).mode()

    def proba(self, column: str | int) -> Probabilities:
        """Returns the probability of each category of a column, given that it is not missing."""
        return self._column(column).proba()

    def entropy(self, column: str | int) -> Estimate:
        """Returns the entropy of a column's known values in nats, in the table's units."""
        return self._column(column).entropy()

    def log_prob(self, X: Any) -> Found:
        """Returns the log-density of rows under the conditions, shape (N,), in the table's units.

        Columns with a given value may be left out; rows that do not meet the conditions have −inf.
        """
        return likelihood.log_prob(self, X, None)

    def marginal(self, columns: Sequence[str | int] | str | int) -> Marginal:
        """Returns the distribution of some columns under the conditions, to score and draw."""
        several = [columns] if isinstance(columns, str | int) else columns
        found = orders.names_of(several, self.estimator.schema_.names)
        if not found:
            raise ValueError("columns must name at least one, but there is none.")
        twice = [name for k, name in enumerate(found) if name in found[:k]]
        if twice:
            raise ValueError(f"columns must name each once, but have {twice[0]!r} twice.")
        return Marginal(self, found)

    def dependence(self, draws: int | None = None, *, given_rest: bool = False) -> Dependence:
        """Returns the mutual information of every pair of columns in nats, from draws.

        draws: How many; 20,000 by default, and 256 given the rest, where each is more work.
        given_rest: Whether all other columns are given, which leaves what they do not tell.
        """
        if given_rest:
            return dependence.given_rest(self, draws or dependence.DRAWS_GIVEN_REST, self.seed)
        return dependence.found(self, draws or dependence.DRAWS, self.seed)

    def plot(self, column: str | int, ax: Any = None) -> Any:
        """Draws a column's density, or the probabilities of its categories; returns the axes."""
        from nits.tables.questions import pictures

        return pictures.column(self._column(column), ax)

    def _column(self, column: str | int) -> OneColumn:
        names = self.estimator.schema_.names
        if isinstance(column, str) and column not in names:
            asked.gathered(self.estimator, {column: 0})  # refuses unknown ones and those set aside
            self._refuse_context({column: []})
        name = column if isinstance(column, str) else names[orders.position(column, names)]
        return self._single(names.index(name))

    def _single(self, i: int) -> OneColumn:
        """Returns a column by conditionals where it comes after all conditions, else by draws."""
        density = self.estimator.model_
        every = [member.order.tolist() for _, member in members(density)]
        ahead = all(self.query.last(order) <= order.index(i) for order in every)
        to = i if ahead else None
        with torch.no_grad():
            cloud = walked(
                density,
                self.query,
                self.seed,
                total=self.particles,
                column=to,
                drawing=not ahead,
            )
            kind = Ahead if ahead else Behind
            return kind(self, self.query.laws[i].column, cloud, i)
