"""One cloud of weighted rows per set of conditions, which serves all panels of the page.

Of the rows that were drawn without conditions, those that meet them follow the conditional
distribution exactly. Where they are too few, as they are of a given real number, particles walk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.tables.columns import Column
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.frames import Values
from nits.tables.questions.cloud import deterministic, members, ratio, walked
from nits.tables.questions.events import Event
from nits.tables.questions.marginals import weighted
from nits.tables.questions.query import Query

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

Numbers = NDArray[np.float64]

BATCHES = 8
"""Independent randomizations, from which standard errors are found."""

MOST = 8192
"""Rows that are shown of those that meet conditions."""


@dataclass(frozen=True)
class Draws:
    """Rows under conditions, each with a weight.

    numbers, tails: What the model has of them, shape (N, D).
    values: By column.
    weights: Of the rows, sum one, shape (N,).
    batch: Which of the independent batches each row is of, shape (N,).
    ess: The effective number of rows.
    exact: Whether the rows follow the model's distribution exactly, so that none has a weight.
    log_evidence: Log-probability or log-density of what is given, of each batch or exact.
    """

    numbers: Numbers
    tails: Numbers
    values: dict[str, Values]
    weights: Numbers
    batch: NDArray[np.int64]
    ess: float
    exact: bool
    log_evidence: Numbers

    def evidence(self) -> tuple[float, float]:
        """Returns the probability or density of what is given, and its standard error."""
        top = float(self.log_evidence.max())
        each = np.exp(self.log_evidence - top)
        error = float(each.std(ddof=1)) / math.sqrt(len(each)) if len(each) > 1 else 0.0
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(top) * each.mean()), float(np.exp(top) * error)

    def by_batch(self, part: Numbers) -> Numbers:
        """Returns sums over the batches, shape (B,)."""
        return np.bincount(self.batch, part, minlength=BATCHES).astype(np.float64)

    def share(self, inside: NDArray[np.bool_]) -> tuple[float, float]:
        """Returns the probability of some rows, and its standard error by batches."""
        whole = self.by_batch(self.weights)
        part = self.by_batch(self.weights * inside)
        return mean_error(part, whole)

    def chosen(self, count: int) -> NDArray[np.int64]:
        """Returns rows chosen by weight, evenly spread."""
        # Neighbours are Sobol points, so a fixed shuffle comes before.
        mixed = np.random.default_rng(0).permutation(len(self.weights))
        reach = np.cumsum(self.weights[mixed])
        sought = (np.arange(count) + 0.5) / count * reach[-1]
        at = np.minimum(np.searchsorted(reach, sought), len(mixed) - 1)
        return np.asarray(mixed[at], np.int64)


def mean_error(part: Numbers, whole: Numbers) -> tuple[float, float]:
    """Returns the ratio of the means over batches, and its standard error."""
    found = part.mean() / whole.mean()
    rest = (part - found * whole) / whole.mean()
    count = len(part)
    return float(found), float(np.sqrt((rest**2).sum() / (count * max(count - 1, 1))))


def kept(estimator: NITSDensity, base: Draws, query: Query) -> Draws:
    """Returns the rows of a base, drawn without conditions, that meet what is given.

    There are none if a number has a density only.
    """
    inside = np.ones(len(base.weights), bool)
    for i, law in enumerate(query.laws):
        numbers, tails = base.numbers[:, i], base.tails[:, i]
        within = np.isnan(tails)
        if bool(query.given[0, i]):
            same = numbers == float(query.numbers[0, i])
            inside &= within & same & (_has_mass(law.column, query, i))
        if i in query.events:
            inside &= _meets(query.events[i], numbers, tails)
    return _some(estimator, base, query, np.flatnonzero(inside))


def _has_mass(column: Column, query: Query, i: int) -> bool:
    """Returns whether the given number of a column has a probability, and is not beyond an end."""
    if bool(query.fixed[0, i]):
        return False
    spikes = getattr(column, "spikes", np.empty(0))
    hole = getattr(column, "missing_number", None) if column.optional else None
    number = np.float32(query.numbers[0, i])
    return (
        column.kind != "continuous"
        or number in spikes
        or (hole is not None and number == np.float32(hole))
    )


def _meets(event: Event, numbers: Numbers, tails: Numbers) -> NDArray[np.bool_]:
    """Returns which values are in an event."""
    within = np.isnan(tails)
    found = np.zeros(len(numbers), bool)
    for low, high in event.numbers:
        # Ends are those of the model's single precision, as in a walk.
        found |= within & (numbers > np.float32(low)) & (numbers <= np.float32(high))
    for side, parts in ((LOWER, event.lower), (UPPER, event.upper)):
        share = side * np.nan_to_num(tails)
        for start, stop in parts:
            found |= (share > start) & (share <= stop)
    return found


def _some(estimator: NITSDensity, base: Draws, query: Query, at: NDArray[np.int64]) -> Draws:
    """Returns some rows of a base, not more than are quick to show."""
    each = np.bincount(base.batch[at], minlength=BATCHES) / (len(base.batch) / BATCHES)
    # A level of a pool has its share of the pool's number.
    of_values = float(query.log_prob[0][query.given[0]].sum())
    with np.errstate(divide="ignore"):
        log_evidence = np.log(each) + of_values
    exactly = _exactly(estimator, query)
    if len(at) > MOST:  # neighbours are Sobol points, so these are any of them
        at = np.sort(np.random.default_rng(0).choice(at, MOST, replace=False))
    return Draws(
        base.numbers[at],
        base.tails[at],
        {name: values.take(at) for name, values in base.values.items()},
        np.full(len(at), 1 / max(len(at), 1)),
        base.batch[at],
        float(len(at)),
        True,
        log_evidence if exactly is None else exactly,
    )


def _exactly(estimator: NITSDensity, query: Query) -> Numbers | None:
    """Returns the log-probability of what is given where nothing has to be drawn for it."""
    every = members(estimator.model_)
    if not all(deterministic(query, member) for _, member in every):
        return None
    with torch.no_grad():
        return np.asarray(walked(estimator.model_, query, 0).log_evidence()[0].double().numpy())


def draws(estimator: NITSDensity, query: Query, total: int, seed: int = 0) -> Draws:
    """Returns about `total` rows under what is given."""
    model: Any = estimator.model_
    orders = [member.order.tolist() for _, member in members(model)]
    exactly = _exactly(estimator, query)
    with torch.no_grad():
        cloud = walked(model, query, seed, total=total, batches=BATCHES, drawing=True)
        log_evidence = cloud.log_evidence()
        ratio(log_evidence, log_evidence)  # refuses what is impossible
        for walk in cloud.walks:
            walk.to(len(walk.order))
        parts = [cloud.column(i) for i in range(len(query.laws))]
    numbers = torch.stack([part.numbers[0].flatten() for part in parts], 1)
    tails = torch.stack([part.tails[0].flatten() for part in parts], 1)
    weights = weighted(cloud)[0]
    return Draws(
        numbers.double().numpy(),
        tails.double().numpy(),
        _values(estimator, numbers.double().numpy(), tails.double().numpy()),
        weights,
        np.arange(BATCHES).repeat(len(weights) // BATCHES),
        float(cloud.ess()[0]),
        all(query.last(order) <= query.leading(order) for order in orders),
        log_evidence[0].double().numpy() if exactly is None else exactly,
    )


def _values(estimator: NITSDensity, numbers: Numbers, tails: Numbers) -> dict[str, Values]:
    columns = enumerate(estimator.schema_.columns)
    return {c.name: decoded(c, numbers[:, i], tails[:, i]) for i, c in columns}


def decoded(column: Column, numbers: Numbers, tails: Numbers) -> Values:
    """Returns the values of a column's numbers, and of shares of its tails."""
    found = column.decode(numbers, np.random.default_rng(0))
    for side in (LOWER, UPPER):
        at = side * tails > 0
        if at.any():
            found = found.replaced(at, column.drawn_beyond(side, np.abs(tails[at])))
    return found
