"""How the network of outlier scores is trained: beside the model, on blurred rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.engines.local import Local
from nits.model.blurred import Blurred
from nits.model.joint import NITS
from nits.tables import minutes, resume, teaching
from nits.tables.blurred import Layout, OutlierNetwork, Place
from nits.tables.columns import plainly
from nits.tables.columns.column import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.defaults import Plan
from nits.tables.frames import Frame, Values
from nits.tables.tasks import Task
from nits.training import ranks
from nits.training.crew import INTERRUPTED
from nits.training.recipe import Recipe
from nits.training.rows import Rows
from nits.weights import MaskedMLP

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

SORT = "blurred rows"
PLACE = "outliers.safetensors"
"""The file of a checkpoint that keeps it."""

RATE = 5e-3
HIDDEN, BLOCKS = 64, 2
MOST = 100_000
"""Rows that it learns from at most."""


class Prepared(NamedTuple):
    """What the network learns from.

    layout: How rows are made of a table's.
    rows: These rows, not blurred yet, with their context and weights.
    """

    layout: Layout
    rows: Rows


def prepared(
    estimator: NITSDensity,
    frame: Frame,
    given: torch.Tensor,
    weight: NDArray[Any] | None,
    plan: Plan,
) -> Prepared | None:
    """Returns the rows of a table, or some of them if they are many; None if none are wanted."""
    if not minutes.scores_outliers(estimator, plan):
        return None
    some = np.arange(0, len(frame), max(1, -(-len(frame) // MOST)))
    weight = None if weight is None else weight[some]
    frame = frame.take(some)
    places = [
        _place(column, frame.columns[column.name], weight) for column in estimator.schema_.columns
    ]
    layout = Layout(estimator.schema_.columns, places)
    reading = estimator.context_reading_
    rows = Rows(
        torch.from_numpy(layout.numbers(frame)[0].astype(np.float32)),
        None if reading is None else given[torch.from_numpy(some)],
        None if weight is None else torch.from_numpy(weight),
        read=None if reading is None else reading.of_rows,
    )
    return Prepared(layout, rows)


def _place(column: Column, values: Values, weight: NDArray[Any] | None) -> Place | None:
    if not isinstance(column, Numeric):
        return None
    plain, broken = plainly.numbers(values, column.facts, column.unit)
    known = ~(values.missing | broken)
    share = None if weight is None or not weight[known].sum() > 0 else weight[known]
    amounts = column.ruler.numbers(plain)[known]
    return Place.of(amounts if len(amounts) else np.zeros(1), share if len(amounts) else None)


def learned(
    estimator: NITSDensity, what: Prepared | None, main: Rows, plan: Plan, seed: int
) -> OutlierNetwork | None:
    """Returns the trained network; None if none is wanted, or an interrupt came before.

    main: The rows that the model learned from, of which a checkpoint is.
    """
    if what is None or estimator.history_["stopped"] == INTERRUPTED:
        return None
    task = _task(estimator, what, plan, seed)
    kept = resume.opened(estimator, main, plan, seed)
    if kept is not None:
        task = task._replace(place=kept.folder / PLACE, course=kept.fingerprint)
    with ranks.apart():  # rows of a batch are mixed, which ranks cannot share
        result = Local(1).run(teaching.taught, [task], progress=estimator.verbose)[0]
    if result is None or not isinstance(result.density, Blurred):
        return None
    return OutlierNetwork(what.layout, result.density.density.eval())


def _task(estimator: NITSDensity, what: Prepared, plan: Plan, seed: int) -> Task:
    heads = [entry.head for entry in what.layout.entries]
    net = MaskedMLP(
        [head.inputs for head in heads],
        [head.weights for head in heads],
        estimator.sketch_.context,
        hidden=max(HIDDEN, len(heads)),
        blocks=BLOCKS,
        codes=plan.codes,
        generator=seed,
    )
    density = Blurred(NITS(heads, net), [entry.width for entry in what.layout.entries])
    recipe = Recipe(batch_size=minutes.OUTLIER_BATCH, learning_rate=RATE)
    steps = minutes.OUTLIER_STEPS
    return Task(
        density,
        SORT,
        {},
        0,
        what.rows,
        torch.arange(len(what.rows)),
        torch.arange(0),
        recipe,
        steps if estimator.max_steps is None else min(steps, estimator.max_steps),
        minutes.of_outliers(estimator, plan),
        seed,
    )
