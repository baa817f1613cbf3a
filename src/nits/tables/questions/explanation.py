"""How surprising each entry of a row is given all the others, and what would be likely instead.

A column is drawn from the model's conditional given the columns before it, and the draws are
weighted by what the row's later columns say: so they follow the column given all the others. The
surprise of an entry is −log of the probability of a value at least as far out; it has no unit, and
does not change when a column is rescaled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.tables import zones
from nits.tables.columns import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame
from nits.tables.questions import asked
from nits.tables.questions.cloud import Cloud, members, walked
from nits.tables.questions.imputation import one as middle
from nits.tables.questions.query import Query

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

Numbers = NDArray[np.float64]

PARTICLES = 256
"""Draws for each entry: the greatest surprise is the logarithm of about so many."""


class Explanation(NamedTuple):
    """What is surprising in the rows of a table.

    names: The columns.
    surprise: −log P(a value at least as far out | all others), shape (N, D).
    likely: A table of the middle of each entry's distribution given all the others.
    """

    names: list[str]
    surprise: Numbers
    likely: Any

    def worst(self, count: int = 10) -> list[tuple[int, str, float]]:
        """Returns row, column and surprise of the most surprising entries."""
        order = np.argsort(-self.surprise, axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(order, self.surprise.shape)
        return [
            (int(r), self.names[c], float(self.surprise[r, c]))
            for r, c in zip(rows, columns, strict=True)
        ]


def explained(estimator: NITSDensity, X: Any, seed: int) -> Explanation:
    """Returns the surprise of each entry of a table; see `NITSDensity.explain`."""
    frame = zones.read(X)
    schema = estimator.schema_
    schema._refuse_lacking(frame)
    if not len(frame):
        raise ValueError("the table must have at least one row to explain, but has none.")
    base = asked.empty(estimator)
    whole = asked.tabled(estimator, base, frame, schema.names)
    surprise, likely = [], {}
    for i, column in enumerate(schema.columns):
        parts = [
            _some(estimator, whole.take(rows), i, seed) for rows in _chunks(estimator, len(frame))
        ]
        surprise.append(np.concatenate([part[0] for part in parts]))
        own, every = frame.columns[column.name], np.ones(len(frame), bool)
        likely[column.name] = own.replaced(every, np.concatenate([part[1] for part in parts]))
    table = zones.write(Frame(likely, frame.form))
    return Explanation(schema.names, np.stack(surprise, 1), table)


def _chunks(estimator: NITSDensity, rows: int) -> list[slice]:
    most = min(member.stepped_at_once for _, member in members(estimator.model_))
    size = max(1, most // PARTICLES)
    return [slice(start, start + size) for start in range(0, rows, size)]


def _some(estimator: NITSDensity, whole: Query, i: int, seed: int) -> tuple[Numbers, NDArray[Any]]:
    """Returns the surprise of a column's entries, and likely values, for some rows."""
    given = whole.given.clone()
    given[:, i] = False
    query = replace(whole, given=given)
    with torch.no_grad():
        cloud = walked(
            estimator.model_, query, seed, total=PARTICLES, batches=1, column=i, drawing=True
        )
        drawn = cloud.column(i)
    column = query.laws[i].column
    weights = _weights(cloud)
    numbers, tails = (part.flatten(1).double().numpy() for part in drawn)
    own = whole.numbers[:, i].double().numpy()[:, None]
    fixed = whole.fixed[:, i].numpy()
    surprise = _surprise(column, own, numbers + _signed(tails), weights)
    surprise = np.where(fixed, np.log(PARTICLES), surprise)
    return surprise, middle(column, "median", numbers, tails, weights)


def _signed(tails: Numbers) -> Numbers:
    """Returns how far beyond the numbers draws of the tails lie, 0 for others."""
    return np.nan_to_num(tails)


def _weights(cloud: Cloud) -> Numbers:
    log_weights = cloud.log_weights().flatten(1)
    lost = (log_weights == -torch.inf).all(1, keepdim=True)
    found: Numbers = log_weights.masked_fill(lost, 0.0).softmax(1).numpy()
    return found


def _surprise(column: Column, own: Numbers, x: Numbers, w: Numbers) -> Numbers:
    """Returns −log of the weight of values at least as far out as a row's own.

    Of amounts, that is twice the smaller side; of categories, the weight of those at most as
    probable. Half a draw is added to each, so that none is infinite.
    """
    ordered = isinstance(column, Numeric) and column.kind != "categorical"
    own, x = (part.astype(np.float32).astype(np.float64) for part in (own, x))
    if ordered:
        below, here = (w * (x < own)).sum(1), (w * (x == own)).sum(1)
        side = np.minimum(below, 1 - below - here) + here / 2
        share = np.minimum(2 * side, 1.0)
    else:
        mass = (w[:, None, :] * (x[:, None, :] == x[:, :, None])).sum(2)  # of each draw's value
        mine = (w * (x == own)).sum(1, keepdims=True)
        share = (w * (mass <= mine * (1 + 1e-9))).sum(1)
    half = 0.5 / PARTICLES
    found: Numbers = np.maximum(-np.log((share + half) / (1 + half)), 0.0)
    return found
