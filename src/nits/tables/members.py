"""The members of a model: networks of several styles on several folds, and simple densities.

Each network holds out the rows of its fold, by which it is stopped. In a first round networks of
all styles share a fold, and simple densities are fitted to the same rows. What all of them say of
rows that they did not learn from gives them their weights in the mixture, equation (30). Sorts
without a weight go out, and the others learn from further folds; weights are then found anew.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from nits.engines.local import Local
from nits.model.density import Density
from nits.model.mixture import Mixture
from nits.model.random_roles import RandomRoles
from nits.model.roles import Roles
from nits.tables import (
    calibration,
    companion,
    disagreement,
    exceedance,
    minutes,
    networks,
    resume,
    sharing,
    tempering,
)
from nits.tables.columns import Real
from nits.tables.columns.numeric import Numeric
from nits.tables.defaults import Plan
from nits.tables.extremes import Extremes, extremes
from nits.tables.judging import Done, Judged, Units, judged
from nits.tables.networks import Sketch
from nits.tables.schema import Schema
from nits.tables.tasks import Course, Learned, Task
from nits.tables.teaching import ended, taught_together
from nits.training import ranks
from nits.training.rows import Rows

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

ANOTHER = 0.05
"""Nats per row that a sort must add to learn from further folds: about what another network of one
of the other sorts adds."""

ROWS = "rows"
"""The name of a mixture of whole rows."""


class Model(NamedTuple):
    """A density, and what there is to say about it.

    members: Of each member its sort, its weight, its PNNs and hats, as a file describes it.
    sorts: Of each sort that was tried its weight, and its own mean log-density of held-out rows.
    history: How the first network was trained, and in it how the others were.
    held_out, error: Mean log-density of rows that were held out, in the table's units, and the
        standard error of it; None without such rows.
    schema: What the columns are, with what lies beyond their ends.
    companion: The network for questions of any columns, if it was wanted and learned.
    """

    density: Density
    members: list[dict[str, Any]]
    sorts: list[dict[str, Any]]
    history: dict[str, Any]
    held_out: float | None
    error: float | None
    schema: Schema | None = None
    companion: Roles | None = None


class Shape(NamedTuple):
    """How members are mixed, as rows that they held out have shown.

    way: How columns are mixed; None for Bayes' rule.
    curves: How much narrower or broader the mixture is made.
    """

    way: tempering.Found | None
    curves: calibration.Found | None


def shaped(mixing: str | None) -> bool:
    """Returns whether columns may be mixed by other weights than whole rows are."""
    if mixing not in (None, ROWS):
        raise ValueError(f"mixing must be {ROWS!r} or None, but is {mixing!r}; choose one.")
    return mixing is None


def learned(estimator: NITSDensity, rows: Rows, units: Units, plan: Plan, seed: int) -> Model:
    """Returns the mixture of all members but those that an interrupt came before.

    units: What to add to the log-density of each row to have it in the table's units.
    """
    course, start = Course.of(estimator, rows, plan, seed), time.monotonic()
    with ranks.current().first():
        kept = resume.opened(estimator, rows, plan, seed)
    first = course.first()
    beside = companion.tasks(course, first[0])
    # The companion learns longest, so it comes early; but a network for the model comes first.
    every = [first[0], *beside, *first[1:]]
    ends = extremes(estimator.schema_.columns, torch.as_tensor(rows.x), rows.places)
    results = _run(kept.placed(every) if kept else every, estimator, plan)
    done = _honest([pair for pair in results if pair[0].sort != companion.SORT], ends)
    if not any(result.history for _, result in done):
        raise KeyboardInterrupt
    told = before = judged(done, rows, units)
    if len(results) == len(every) and all(ended(result) for _, result in results):
        serving = judged(done, rows, units, ANOTHER).kept | set(networks.SIMPLE)
        spent = [result.history["step"][-1] for _, result in done if result.history]
        second = course.second(serving, spent)
        second = kept.placed(second, len(every)) if kept else second
        later = _honest(_run(second, estimator, plan, time.monotonic() - start), ends)
        if later:
            done = [pair for pair in done if pair[0].sort in serving] + later
            told = judged(done, rows, units)
    shape = Shape(None, None)
    if len(estimator.orders_) == 1 and shaped(estimator.mixing):  # several have no conditionals
        told, shape = _shape(estimator.sketch_, rows, done, told)
    found = _mixed(estimator.sketch_, rows, done, told, before, shape)
    return _with_companion(_with_schema(found, estimator.schema_, rows, told), results)


def _with_schema(found: Model, decided: Schema, rows: Rows, told: Judged) -> Model:
    """Adds columns of which as much lies beyond an end as of a next row, equation (28)."""
    schema = exceedance.calibrated(decided, found.density, rows)
    numbers = rows.values(torch.from_numpy(told.which))
    gains = exceedance.changes(decided, schema, numbers.double().cpu().numpy())
    held_out, error = told.raised(told.which, gains).figures
    return found._replace(schema=schema, held_out=held_out, error=error)


def _with_companion(found: Model, results: Done) -> Model:
    """Adds the companion, if it is among the results, and how it was trained."""
    for task, result in results:
        if task.sort == companion.SORT and isinstance(result.density, RandomRoles):
            history = {**found.history, companion.SORT: result.history}
            found = found._replace(companion=result.density.roles.eval(), history=history)
    return found


def _shape(sketch: Sketch, rows: Rows, done: Done, told: Judged) -> tuple[Judged, Shape]:
    """Returns how members are mixed, by rows that several held out, and what that says of sorts."""
    weight = None if rows.weights is None else rows.weights.double().numpy()
    parts = []
    for here in _folds(done):
        every, sorts = [result.density for _, result in here], [task.sort for task, _ in here]
        if len(sketch.columns) > 1:
            parts.append(tempering.seen(every, sorts, told.shares, rows, here[0][0].held_out))
    way = tempering.found(parts, weight)
    if way is not None:
        shares = {sort: float(each.mean()) for sort, each in way.weights.items()}
        told = told.raised(way.which, way.gains)
        told = told._replace(shares={sort: shares.get(sort, 0.0) for sort in told.shares})
    curves = _curves(sketch, rows, done, told, way)
    if curves is not None:
        told = told.raised(curves.which, curves.gains)
    return told, Shape(way, curves)


def _folds(done: Done) -> list[Done]:
    """Returns what became of tasks, fold by fold, where several have held out some rows."""
    every = [
        [pair for pair in done if pair[0].fold == fold]
        for fold in sorted({task.fold for task, _ in done})
    ]
    return [here for here in every if len(here) > 1 and len(here[0][0].held_out)]


def _curves(
    sketch: Sketch, rows: Rows, done: Done, told: Judged, way: tempering.Found | None
) -> calibration.Found | None:
    """Returns how much narrower or broader the mixture should be, if rows were held out."""
    curved = [isinstance(column, Numeric) and not column.optional for column in sketch.columns]
    parts = []
    for every in _folds(done):
        here = [pair for pair in every if told.shares[pair[0].sort]]
        count = sum(result.history is not None for _, result in here)
        if count >= calibration.ENOUGH and any(curved):
            shares = [told.shares[task.sort] / _alike(task, here) for task, _ in here]
            mixture = _mixture(here, shares, way)
            parts.append(calibration.seen(mixture, rows, here[0][0].held_out, curved))
    weight = None if rows.weights is None else rows.weights.double().numpy()
    trained = [task for task, result in done if result.history is not None]
    shares = [told.shares[task.sort] / _alike(task, done) for task in trained]
    shares += [told.shares.get(sort, 0.0) for sort in networks.SIMPLE]
    whole = torch.tensor([not isinstance(column, Real) for column in sketch.columns])
    apart = _apart(rows, done, told, (torch.tensor(curved), whole))
    return calibration.found(parts, weight, shares, apart)


def _apart(rows: Rows, done: Done, told: Judged, between: disagreement.Between) -> float:
    """Returns how much more networks of different folds disagree than those of one."""
    every = []
    for here in _folds(done):
        networks_ = [pair for pair in here if pair[1].history and told.shares[pair[0].sort]]
        shares = [told.shares[task.sort] / _alike(task, here) for task, _ in networks_]
        members = [result.density for _, result in networks_]
        every.append(disagreement.Fold(members, shares, here[0][0].held_out))
    return disagreement.ratio(rows, every, *between)


def _mixture(here: Done, shares: list[float], way: tempering.Found | None) -> Mixture:
    """Returns a mixture of what became of tasks, by Bayes' rule if no other way is better."""
    densities = [result.density for _, result in here]
    if way is None:
        return Mixture(densities, shares)
    return tempering.mixture(densities, [task.sort for task, _ in here], way)


def _alike(task: Task, every: Done) -> int:
    """Returns how many members are of the same sort."""
    return sum(other.sort == task.sort for other, _ in every)


def _run(tasks: list[Task], estimator: NITSDensity, plan: Plan, spent: float = 0.0) -> Done:
    """Runs tasks side by side, and returns those that no interrupt came before.

    spent: Seconds since members began to learn; after a first round the rest is for these tasks.
    """
    if not tasks:
        return []
    named = estimator.engine
    teams = sharing.teams(tasks, named.parallel() if named else sharing.cores(tasks))
    engine = named or Local(sharing.workers(teams))
    at_once = engine.at_once(len(sharing.trained(teams)))
    if (whole := minutes.of_members(estimator, plan)) is not None:
        count = 0 if spent else plan.members + companion.checked(estimator.answers)
        left = max(whole - spent / 60, whole / plan.members)
        teams = sharing.timed(teams, left, count, at_once)
    results = engine.run(taught_together, teams, progress=estimator.verbose, at_once=at_once)
    pairs = zip(teams, results, strict=True)
    done = [
        pair for team, some in pairs if some is not None for pair in zip(team, some, strict=True)
    ]
    places = {id(task.density): k for k, task in enumerate(tasks)}
    return sorted(done, key=lambda pair: places[id(pair[0].density)])


def _honest(done: Done, ends: Extremes) -> Done:
    """Returns the same with scores as if no extreme value of a held-out row had been known."""
    return [
        (task, result._replace(scores=ends.left_out(result.scores, *_parts(task, result))))
        for task, result in done
    ]


def _parts(task: Task, result: Learned) -> tuple[Density, Rows, torch.Tensor]:
    return result.density, task.rows, task.held_out


def _mixed(
    sketch: Sketch,
    rows: Rows,
    done: Done,
    told: Judged,
    before: Judged,
    shape: Shape,
) -> Model:
    """Returns the mixture of members that have a weight.

    before: What the first round told, which had all sorts.
    shape: How they are mixed.
    """
    parts: Done = [
        (task, result) for task, result in done if result.history and told.shares[task.sort]
    ]
    shares = [told.shares[task.sort] / _alike(task, done) for task, _ in parts]
    for sort in networks.SIMPLE:
        if told.shares.get(sort):
            task = next(task for task, _ in done if task.sort == sort)
            density = networks.simple_of(sketch, sort, rows)
            task = task._replace(about=networks.simple_about(density))
            parts.append((task, Learned(density, None, np.empty(0))))
            shares.append(told.shares[sort])
    density = _mixture(parts, shares, shape.way) if len(parts) > 1 else parts[0][1].density
    pairs = zip(parts, shares, strict=True)
    members = [{"sort": task.sort, "weight": share, **task.about} for (task, _), share in pairs]
    sorts = [
        {
            "sort": sort,
            "weight": told.shares.get(sort, 0.0),
            "held_out": told.alone.get(sort, alone),
        }
        for sort, alone in before.alone.items()
    ]
    density = calibration.calibrated(density.eval(), shape.curves)
    return Model(density, members, sorts, _history(done), *told.figures)


def _history(done: Done) -> dict[str, Any]:
    """Returns the training history of the first network, and those of the others in it."""
    first, *others = (result.history for _, result in done if result.history is not None)
    return {**first, "others": others}
