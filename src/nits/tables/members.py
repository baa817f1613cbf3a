"""The members of a model: networks of several styles on several folds, and simple densities.

Each network holds out the rows of its fold, by which it is stopped. In a first round networks of
all styles share a fold, and simple densities are fitted to the same rows. What all of them say of
rows that they did not learn from gives them their weights in the mixture, equation (30). Sorts
without a weight go out, and the others learn from further folds; weights are then found anew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.engines.local import Local, available
from nits.model.density import Density
from nits.model.mixture import Mixture
from nits.model.random_roles import RandomRoles
from nits.model.roles import Roles
from nits.tables import companion, networks, stacking
from nits.tables.defaults import PNN_WEIGHT, STEP, Plan
from nits.tables.networks import Sketch
from nits.tables.tasks import SIMPLE_PNN, Course, Task
from nits.training.fit import fit as train
from nits.training.likelihood import SCORED_AT_ONCE, start_from_data
from nits.training.progress import Reporter
from nits.training.rows import Rows

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

WORTH_PROCESSES = 10.0
"""Seconds of training from which processes are started, which takes about 3 seconds."""


INTERRUPTED = "interrupted"

ANOTHER = 0.05
"""Nats per row that a sort must add to learn from further folds: about what another network of one
of the other sorts adds."""


class Learned(NamedTuple):
    """What became of a task.

    density, history: What it learned, and how; no history of a simple member.
    scores: Log-densities of the rows that it held out.
    """

    density: Density
    history: dict[str, Any] | None
    scores: NDArray[np.float64]


class Model(NamedTuple):
    """A density, and what there is to say about it.

    members: Of each member its sort, its weight, its PNNs and hats, as a file describes it.
    sorts: Of each sort that was tried its weight, and its own mean log-density of held-out rows.
    history: How the first network was trained, and in it how the others were.
    held_out, error: Mean log-density of rows that were held out, in the table's units, and the
        standard error of it; None without such rows.
    companion: The network for questions of any columns, if it was wanted and learned.
    """

    density: Density
    members: list[dict[str, Any]]
    sorts: list[dict[str, Any]]
    history: dict[str, Any]
    held_out: float | None
    error: float | None
    companion: Roles | None = None


def learned(
    estimator: NITSDensity, rows: Rows, units: NDArray[np.float64], plan: Plan, seed: int
) -> Model:
    """Returns the mixture of all members but those that an interrupt came before.

    units: What to add to the log-density of each row to have it in the table's units.
    """
    course = Course.of(estimator, rows, plan, seed)
    first = course.first()
    beside = companion.tasks(course, first[0])
    # The companion learns longest, so it comes early; but a network for the model comes first.
    results = _run([first[0], *beside, *first[1:]], estimator, plan)
    done = [pair for pair in results if pair[0].sort != companion.SORT]
    if not any(result.history for _, result in done):
        raise KeyboardInterrupt
    told = judged = _judged(done, rows, units)
    whole = len(results) == len(first) + len(beside)
    if whole and all(_ended(result) for _, result in results):
        serving = _judged(done, rows, units, ANOTHER).kept
        later = _run(course.second(serving), estimator, plan)
        if later:
            done = [pair for pair in done if pair[0].sort in serving] + later
            told = _judged(done, rows, units)
    found = _mixed(estimator.sketch_, rows, done, told, judged)
    return _with_companion(found, results)


def _with_companion(found: Model, results: list[tuple[Task, Learned]]) -> Model:
    """Adds the companion, if it is among the results, and how it was trained."""
    for task, result in results:
        if task.sort == companion.SORT and isinstance(result.density, RandomRoles):
            history = {**found.history, companion.SORT: result.history}
            found = found._replace(companion=result.density.roles.eval(), history=history)
    return found


def _run(tasks: list[Task], estimator: NITSDensity, plan: Plan) -> list[tuple[Task, Learned]]:
    """Runs tasks side by side, and returns those that no interrupt came before."""
    workers = _workers(tasks)
    if (minutes := estimator.max_minutes) is not None:
        count = plan.members + companion.checked(estimator.answers)
        waves = math.ceil(count / workers)
        tasks = [task._replace(max_minutes=minutes / waves) for task in tasks]
    results = Local(workers).run(taught, tasks, progress=estimator.verbose) if tasks else []
    pairs = zip(tasks, results, strict=True)
    return [(task, result) for task, result in pairs if result is not None]


def _ended(result: Learned) -> bool:
    """Returns whether a member has learned to the end, and was not interrupted."""
    return result.history is None or result.history["stopped"] != INTERRUPTED


def taught(task: Task, reporter: Reporter) -> Learned:
    """Trains a network, or starts a simple density from the rows."""
    fitted, kept = task.rows.view(task.fitted), task.rows.view(task.held_out)
    if task.recipe is None:
        start_from_data(task.density, fitted)
        return Learned(task.density.eval(), None, _scores(task.density, kept))
    history = train(
        task.density,
        fitted,
        validation=kept if len(kept) else 0.0,
        recipe=task.recipe,
        max_steps=task.max_steps,
        max_minutes=task.max_minutes,
        seed=task.seed,
        progress=reporter,
    )
    return Learned(task.density, history.to_dict(), _scores(task.density, kept))


def _scores(density: Density, rows: Rows) -> NDArray[np.float64]:
    with torch.no_grad():
        batches = rows.batches(SCORED_AT_ONCE, density.like)
        parts = [density.log_prob(batch.x, batch.context).double() for batch in batches]
    return torch.cat(parts).cpu().numpy() if parts else np.empty(0)


class Judged(NamedTuple):
    """What the rows that were held out say of each sort of members.

    shares: The weight of each sort, by name.
    alone: The mean log-density of those rows under each sort.
    held_out, error: That of their mixture, and its standard error.
    """

    shares: dict[str, float]
    alone: dict[str, float | None]
    held_out: float | None
    error: float | None

    @property
    def kept(self) -> set[str]:
        """The sorts with a weight."""
        return {sort for sort, share in self.shares.items() if share > 0}


def _judged(
    done: list[tuple[Task, Learned]],
    rows: Rows,
    units: NDArray[np.float64],
    worth_per_row: float = 0.0,
) -> Judged:
    """Weighs members by what they say of rows that they held out, equation (30).

    worth_per_row: Nats that a sort must add to have a weight.
    """
    sorts = list(dict.fromkeys(task.sort for task, _ in done))
    index, scores = _table(done, sorts)
    weight = rows.view(index).weights
    by_row = None if weight is None else weight.double().numpy()
    w = stacking.weights(scores, by_row, worth_per_row)
    own = scores + units[index.numpy(), None]
    alone = [_figures(column, by_row)[0] for column in own.T]
    return Judged(
        dict(zip(sorts, w.tolist(), strict=True)),
        dict(zip(sorts, alone, strict=True)),
        *_figures(stacking.mixed(own, w), by_row),
    )


def _mixed(
    sketch: Sketch,
    rows: Rows,
    done: list[tuple[Task, Learned]],
    told: Judged,
    before: Judged,
) -> Model:
    """Returns the mixture of members that have a weight.

    before: What the first round told, which had all sorts.
    """
    parts = []
    for task, result in done:
        if result.history is not None and told.shares[task.sort]:
            alike = sum(other.sort == task.sort for other, _ in done)
            parts.append((result.density, task, told.shares[task.sort] / alike))
    for sort in (networks.LINEAR, networks.INDEPENDENT):
        if told.shares.get(sort):
            task = next(task for task, _ in done if task.sort == sort)
            density = networks.simple(sketch, sort, SIMPLE_PNN)
            start_from_data(density, rows)
            parts.append((density.eval(), task, told.shares[sort]))
    weights = [share for *_, share in parts]
    density = Mixture([part[0] for part in parts], weights) if len(parts) > 1 else parts[0][0]
    members = [{"sort": task.sort, "weight": share, **task.about} for _, task, share in parts]
    sorts = [
        {
            "sort": sort,
            "weight": told.shares.get(sort, 0.0),
            "held_out": told.alone.get(sort, alone),
        }
        for sort, alone in before.alone.items()
    ]
    return Model(density.eval(), members, sorts, _history(done), told.held_out, told.error)


def _table(
    done: list[tuple[Task, Learned]], sorts: list[str]
) -> tuple[torch.Tensor, NDArray[np.float64]]:
    """Returns the rows that all sorts held out, and their scores under each, shape (N, S)."""
    found: dict[int, dict[str, NDArray[np.float64]]] = {}
    rows: dict[int, torch.Tensor] = {}
    for task, result in done:
        found.setdefault(task.fold, {})[task.sort] = result.scores
        rows[task.fold] = task.held_out
    whole = [fold for fold, by_sort in found.items() if len(by_sort) == len(sorts)]
    if not whole:
        return torch.empty(0, dtype=torch.long), np.empty((0, len(sorts)))
    columns = [np.concatenate([found[fold][sort] for fold in whole]) for sort in sorts]
    return torch.cat([rows[fold] for fold in whole]), np.stack(columns, 1)


def _history(done: list[tuple[Task, Learned]]) -> dict[str, Any]:
    """Returns the training history of the first network, and those of the others in it."""
    first, *others = (result.history for _, result in done if result.history is not None)
    return {**first, "others": others}


def _figures(
    said: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> tuple[float | None, float | None]:
    """Returns the mean of held-out rows, and its standard error."""
    if not len(said):
        return None, None
    share = np.full(len(said), 1 / len(said)) if weight is None else weight / weight.sum()
    mean = float(share @ said)
    return mean, float(np.sqrt(np.sum((share * (said - mean)) ** 2)))


def _workers(every: list[Task]) -> int:
    """Returns the number of processes to train in: 1, this one, if others cost more than they save.

    Results do not depend on it, unless the budget is in minutes.
    """
    work = sum(_seconds(task) for task in every)
    return min(available(), len(every)) if work >= WORTH_PROCESSES else 1


def _seconds(task: Task) -> float:
    """Returns about how long training takes on one core."""
    if task.recipe is None:
        return 0.0
    minutes = math.inf if task.max_minutes is None else task.max_minutes
    steps = math.inf if task.max_steps is None else task.max_steps
    weights = min(task.recipe.batch_size, len(task.rows)) * task.density.weights_per_row
    return min(60 * minutes, steps * (STEP + PNN_WEIGHT * weights))
