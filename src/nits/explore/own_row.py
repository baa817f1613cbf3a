"""One row: its log-density, the surprise of each entry, and what would be likely instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nits.explore import told
from nits.explore.draws import decoded
from nits.explore.views import Listing, Numbers, View, amounts, spelled
from nits.tables import orders, outliers, scoring
from nits.tables.frames import Frame, Values
from nits.tables.questions import asked
from nits.tables.questions.cloud import walked
from nits.tables.questions.cuts import one

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

PARTICLES = 256
"""Values that are drawn in the place of each entry."""

QUANTILES = (0.05, 0.5, 0.95)

TOP = 3
"""Levels that are named as likely instead."""


@dataclass(frozen=True)
class Entry:
    """One entry of a row.

    surprise: −log P(a value at most as likely | columns before), in nats; None if it is unknown.
    unseen: Whether the value was never seen in training.
    likely: What would be likely given all other entries: levels with their probabilities, or the
        5, 50 and 95 percent quantiles.
    """

    name: str
    value: str | None
    surprise: float | None
    unseen: bool
    likely: list[tuple[str, float]]


@dataclass(frozen=True)
class OwnRow:
    """A row with its log-density in nats; None where it is ruled out.

    note: Why surprises are not known, if they are not.
    """

    log_density: float | None
    surprise: float | None
    entries: list[Entry]
    note: str


def own_row(estimator: NITSDensity, views: Sequence[View], said: dict[str, Any]) -> OwnRow:
    """Returns what the model says of a row; said: A text, a level's position or null by column."""
    names = [view.column.name for view in views]
    unknown = [name for name in said if name not in names]
    if unknown:
        raise ValueError(f"the model has no column {unknown[0]!r}; reload the page.")
    columns = {v.column.name: _values(v, said.get(v.column.name)) for v in views}
    frame = Frame(columns, estimator.schema_.form)
    coded = estimator.schema_.encode(frame)
    total = float(scoring.rows(estimator, frame)[0])
    surprises, note = _surprises(estimator, frame)
    with torch.no_grad():
        likely = _likely(estimator, views, frame)
    entries = [
        Entry(
            name,
            _text(columns[name]),
            None if surprises is None else _finite(surprises[i]),
            bool(coded.unseen[0, i]),
            likely[i],
        )
        for i, name in enumerate(names)
    ]
    whole = None if surprises is None else _finite(surprises.sum())
    return OwnRow(_finite(total), whole, entries, note)


def _values(view: View, said: Any) -> Values:
    if said is None or said == "":
        return Values(np.full(1, np.nan), np.ones(1, bool), "float64")
    return one(told.value(view, said))


def _text(values: Values) -> str | None:
    return None if values.missing[0] else spelled(values.array[0])


def _finite(x: Any) -> float | None:
    return float(x) if np.isfinite(x) else None


def _surprises(estimator: NITSDensity, frame: Frame) -> tuple[Numbers | None, str]:
    """Returns the surprise of each entry, shape (D,), or why it is not known."""
    try:
        orders.refuse(orders.differing(estimator.model_))
        return outliers.of_frame(estimator, frame)[0], ""
    except ValueError as error:
        return None, str(error)


def _likely(
    estimator: NITSDensity, views: Sequence[View], frame: Frame
) -> list[list[tuple[str, float]]]:
    """Returns what would be likely in the place of each entry, given all others."""
    names = [view.column.name for view in views]
    found = []
    for i, view in enumerate(views):
        others = [name for name in names if name != view.column.name]
        question = asked.tabled(estimator, asked.query(estimator, {}), frame, others)
        cloud = walked(estimator.model_, question, 0, total=PARTICLES, batches=1, drawing=True)
        for walk in cloud.walks:
            walk.to(len(names))
        weights = cloud.log_weights().flatten().softmax(0).nan_to_num().numpy()
        numbers, tails = (part.flatten().double().numpy() for part in cloud.column(i))
        found.append(_summary(view, numbers, tails, weights))
    return found


def _summary(
    view: View, numbers: Numbers, tails: Numbers, weights: Numbers
) -> list[tuple[str, float]]:
    """Returns the most probable levels, or quantiles, each with its probability or level."""
    values = decoded(view.column, numbers, tails)
    weights = np.where(values.missing, 0.0, weights)
    if not weights.sum():
        return []
    weights = weights / weights.sum()
    if isinstance(view, Listing):
        count = int(view.numbers.max()) + 1
        mass = np.bincount(numbers.astype(np.int64), weights, minlength=count)
        each = mass[view.numbers] * view.shares
        best = np.argsort(-each, kind="stable")[:TOP]
        return [(spelled(view.levels[k]), float(each[k])) for k in best if each[k] > 0]
    order = np.argsort(amounts(values), kind="stable")
    reach = np.cumsum(weights[order])
    at = order[np.minimum(np.searchsorted(reach, QUANTILES), len(order) - 1)]
    return [(spelled(values.array[k]), q) for k, q in zip(at, QUANTILES, strict=True)]
