"""Answers for each row of a table, whose values are given: what follows for the other columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits import checks
from nits.tables import orders, zones
from nits.tables.columns import Column
from nits.tables.conditional import Conditional
from nits.tables.frames import Frame
from nits.tables.questions import asked, imputation, rows
from nits.tables.questions.cloud import Cloud, members, ratio, walked
from nits.tables.questions.conditions import Conditions, Range, Value, missing, up_to
from nits.tables.questions.laws import Drawn
from nits.tables.questions.likelihood import PARTICLES, evidence
from nits.tables.questions.marginals import Marginal, Pooled, weighted
from nits.tables.questions.particles import systematic
from nits.tables.questions.query import Query
from nits.tables.questions.results import Estimate, Found
from nits.tables.questions.shares import of_rows
from nits.tables.questions.single import listed, missing_only, refuse_no_mean, refuse_no_quantiles
from nits.tables.validate import checked_levels

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


class RowAnswers:
    """The distribution of the columns that a table lacks, given each of its N rows.

    A missing value in the table is given as missing. Answers are exact where the given columns
    come first in the model's order.

    conditions: What is given besides, the same for all rows.
    """

    def __init__(
        self, estimator: NITSDensity, frame: Frame, conditions: Conditions, seed: int = 0
    ) -> None:
        if not len(frame):
            raise ValueError("the table must have at least one row to answer for, but has none.")
        self.estimator, self.frame, self.seed = estimator, frame, seed
        self.names = [name for name in estimator.schema_.names if name in frame.columns]
        every = [*estimator.names_, *estimator.context_schema_.names]
        for name in frame.columns:
            orders.position(name, every)
        both = [name for name in self.names if name in conditions]
        if both:
            raise ValueError(f"column {both[0]!r} must be given once, but is given twice.")
        self.base = asked.query(estimator, {**self._first(), **conditions})
        self.query = asked.tabled(estimator, self.base, frame, self.names)
        asked.tell_unseen(estimator, frame, self.names)

    def _first(self) -> Conditions:
        """Returns a value of each of the context's columns; the table has one for each row."""
        found: Conditions = {}
        for name in self.estimator.context_schema_.names:
            if name in self.frame.columns:
                values = self.frame.columns[name]
                found[name] = [missing if values.missing[0] else Value(values.array[0])]
        return found

    def __len__(self) -> int:
        return self.query.rows

    def __repr__(self) -> str:
        return f"<answers of a model given {len(self)} rows of {', '.join(self.names)}>"

    def probability(self, event: Mapping[Any, Any] | str) -> Estimate:
        """Returns the probability of an event given each row; each field has shape (N,)."""
        told = asked.gathered(self.estimator, event)
        for name in told:
            self._refuse_given(name)
        narrow = asked.narrowed(self.query, told)
        if narrow is None:
            zero = np.zeros(len(self))
            return Estimate(zero, zero, np.full(len(self), np.inf))
        return of_rows(self.estimator.model_, self.query, narrow, self.seed)

    def cdf(self, column: str | int, value: Any) -> Estimate:
        """Returns the probability of a known value of a column at most as large, given each row."""
        name = self.estimator.schema_.names[self._position(column)]
        part = self.probability({name: up_to(name, value)})
        whole = self.probability({name: Range()})
        if not np.all(whole.estimate):
            raise missing_only(self.query.laws[self._position(column)].column)
        share = np.minimum(part.estimate / whole.estimate, 1.0)
        return Estimate(share, part.error / whole.estimate, part.ess)

    def log_prob(self, X: Any) -> Found:
        """Returns the log-density of other columns given each row, shape (N,), in their units.

        X: A table of as many rows, with some or all of the columns that are not given.
        """
        frame = zones.read(X)
        if len(frame) != len(self):
            raise ValueError(
                f"the table must have a row for each of the {len(self)} that are given, "
                f"but has {len(frame)}."
            )
        both = self.estimator.schema_.names
        for name in frame.columns:
            orders.position(name, both)
            self._refuse_given(name)
        whole = Frame({**self.frame.columns, **frame.columns}, frame.form)
        names = [name for name in both if name in whole.columns]
        question = asked.tabled(self.estimator, self.base, whole, names)
        part, ess = evidence(self.estimator.model_, question, self.seed)
        given, other = evidence(self.estimator.model_, self.query, self.seed)
        found = part.logsumexp(1) - given.logsumexp(1) + math.log(given.shape[1] / part.shape[1])
        even = [each - each.amax(1, keepdim=True) for each in (part, given)]
        share, error = ratio(*even)
        return Found.of(found.numpy(), (error / share).numpy(), torch.minimum(ess, other).numpy())

    def quantiles(
        self, column: str | int, levels: Sequence[float] | float = (0.05, 0.5, 0.95)
    ) -> Found:
        """Returns quantiles of a column's known values given each row, shape (N, len(levels))."""
        i, shares = self._position(column), checked_levels(levels)
        refuse_no_quantiles(self.query.laws[i].column)

        def of_part(column: Column, cloud: Cloud) -> NDArray[Any]:
            if cloud.exact:
                return Conditional(column, Pooled(Marginal(cloud, i))).quantiles(shares)
            drawn = _draws(column, cloud, i)
            at = [imputation.halfway(*drawn, level) for level in shares]
            every = np.arange(len(drawn[0]))
            values = [imputation.decoded(column, *(d[every, k] for d in drawn[:2])) for k in at]
            return np.stack(values, 1)

        return self._each(i, of_part)

    def mean(self, column: str | int) -> Found:
        """Returns the mean of a column's known values given each row, shape (N,)."""
        refuse_no_mean(self.query.laws[self._position(column)].column)
        return self._middle(column, "mean")

    def mode(self, column: str | int) -> Found:
        """Returns the most probable value of a column given each row, shape (N,)."""
        return self._middle(column, "mode")

    def _middle(self, column: str | int, how: str) -> Found:
        i = self._position(column)

        def of_part(column: Column, cloud: Cloud) -> NDArray[Any]:
            if cloud.exact and how == "mean":
                return Conditional(column, Pooled(Marginal(cloud, i))).mean()
            return imputation.one(column, how, *_draws(column, cloud, i))

        return self._each(i, of_part, exact=how == "mean")

    def proba(self, column: str | int) -> Found:
        """Returns the probability of each category given each row, shape (N, levels).

        The categories are in the order of `Answer.proba`.
        """
        i = self._position(column)
        _, numbers, shares = listed(self.query.laws[i].column)
        if self._lone(i):
            return self._enumerated(i, numbers, shares)

        def of_part(column: Column, cloud: Cloud) -> NDArray[Any]:
            if cloud.exact:
                marginal = Marginal(cloud, i)
                x = torch.from_numpy(numbers).to(self.estimator.model_.like)
                mass = marginal.pooled(marginal.masses(x)).numpy().T
            else:
                own, _, w = _draws(column, cloud, i)
                mass = np.stack([(w * (own == number)).sum(1) for number in numbers], 1)
            mass = mass * shares
            found: NDArray[Any] = mass / mass.sum(1, keepdims=True)
            return found

        return self._each(i, of_part)

    def _lone(self, i: int) -> bool:
        """Returns whether all other columns are given a value in all rows."""
        rest = [k for k in range(len(self.query.laws)) if k != i]
        return bool(self.query.given[:, rest].all()) and not self.query.events

    def _enumerated(self, i: int, numbers: NDArray[Any], shares: NDArray[Any]) -> Found:
        """Returns probabilities by the joint density of the row with each category: exact."""
        given = self.query.given.clone()
        given[:, i] = True
        parts = []
        for number in numbers:
            values, added = self.query.numbers.clone(), self.query.log_prob.clone()
            values[:, i], added[:, i] = float(number), 0.0
            one = replace(self.query, given=given, numbers=values, log_prob=added)
            parts.append(evidence(self.estimator.model_, one, self.seed)[0][:, 0])
        found = torch.stack(parts, 1).softmax(1).numpy() * shares
        found = found / found.sum(1, keepdims=True)
        return Found.of(found, np.zeros_like(found), np.full(len(self), np.inf))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Any:
        """Draws n_samples rows for each row of the table, beside each other."""
        checks.positive("n_samples", n_samples)
        seed = rows.seed_of(random_state)
        source = torch.Generator().manual_seed(seed)
        last = len(self.query.laws)
        parts: list[Drawn] = []
        for cloud in self._clouds(last, seed, max(PARTICLES, 4 * n_samples)):
            log_weights = cloud.log_weights().flatten(1)
            mixed = torch.randperm(log_weights.shape[1], generator=source)
            chosen = mixed[systematic(log_weights[:, mixed], source, n_samples)]
            drawn = [cloud.column(i) for i in range(last)]
            numbers, tails = (
                torch.stack([d[k].flatten(1).gather(1, chosen).flatten() for d in drawn], 1)
                for k in (0, 1)
            )
            parts.append(Drawn(numbers, tails))
        found = Drawn(*(torch.cat(part) for part in zip(*parts, strict=True)))
        columns = rows.values(self.estimator, found, seed)
        place = np.arange(len(self)).repeat(n_samples)
        columns |= {name: self.frame.columns[name].take(place) for name in self.names}
        every = rows.every(self.estimator, columns, len(place))
        return zones.write(Frame(every, self.estimator.schema_.form))

    def _position(self, column: str | int) -> int:
        names = self.estimator.schema_.names
        i = orders.position(column, names)
        self._refuse_given(names[i])
        return i

    def _refuse_given(self, name: str) -> None:
        if name in self.names:
            raise ValueError(f"column {name!r} is given by the table, so it cannot be asked.")

    def _clouds(self, rank: int | None, seed: int, total: int = PARTICLES) -> list[Cloud]:
        """Returns particles of some rows after another, which have passed so many columns."""
        found = []
        with torch.no_grad():
            for some in self._chunks(total):
                cloud = walked(
                    self.estimator.model_, some, seed, total=total, batches=1, drawing=True
                )
                for walk in cloud.walks:
                    walk.to(rank or 0)
                found.append(cloud)
        return found

    def _chunks(self, total: int) -> list[Query]:
        most = min(member.stepped_at_once for _, member in members(self.estimator.model_))
        size = max(1, most // total)
        return [self.query.take(slice(k, k + size)) for k in range(0, len(self), size)]

    def _each(self, i: int, of_part: Any, exact: bool = True) -> Found:
        """Returns what a function finds of a column's particles, all rows together."""
        density, column = self.estimator.model_, self.query.laws[i].column
        parts, sizes = [], []
        sure = exact and cloud_is_exact(density, self.query, i)
        with torch.no_grad():
            for some in self._chunks(len(members(density)) if sure else PARTICLES):
                cloud = walked(
                    density,
                    some,
                    self.seed,
                    total=PARTICLES,
                    batches=1,
                    column=i,
                    drawing=not sure,
                )
                parts.append(of_part(column, cloud))
                sizes.append(cloud.ess().numpy())
        return Found.of(np.concatenate(parts), None, np.concatenate(sizes))


def cloud_is_exact(density: Any, query: Query, i: int) -> bool:
    """Returns whether a column comes right after columns that are all given, in every member."""
    orders_ = [member.order.tolist() for _, member in members(density)]
    return all(query.last(order) <= order.index(i) <= query.leading(order) for order in orders_)


def _draws(column: Column, cloud: Cloud, i: int) -> tuple[Any, Any, Any]:
    """Returns numbers, tails and weights of known draws, each of shape (R, P)."""
    drawn = cloud.column(i)
    numbers, tails = (part.flatten(1).double().numpy() for part in drawn)
    low, high = (float(np.float32(end)) for end in column.within)
    w = weighted(cloud) * ((numbers > low) & (numbers <= high))
    return numbers, tails, w / np.maximum(w.sum(1, keepdims=True), 1e-300)
