"""The networks of a model: each trained on other rows and from another seed, then mixed.

Every member holds out rows of its own, by which it is stopped, so together they learn from all of
them, and what the members say of the rows that they held out is an honest figure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.engines.local import Local, available
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.mixture import Mixture
from nits.model.whitened import Whitened
from nits.tables.defaults import Plan
from nits.training.fit import fit as train
from nits.training.progress import Reporter
from nits.training.recipe import Recipe
from nits.training.rows import Rows, parted

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

STEP_SECONDS, WEIGHT_SECONDS = 3e-3, 15e-9
"""About what a step costs on one core, and each weight of a PNN in it, measured on small tables."""

WORTH_PROCESSES = 10.0
"""Seconds of training from which processes are started, which takes about 3 seconds."""


class Member(NamedTuple):
    """One network.

    density, history: What it learned, and how.
    held_out: Mean log-density of the rows that it held out, in the table's units; None without any.
    weight: The weight of those rows.
    """

    density: Density
    history: dict[str, Any]
    held_out: float | None
    weight: float


class Task(NamedTuple):
    """What one network needs to train, here or in another process.

    rows: All rows, the same for every member.
    fitted, held_out: Which of them it learns from, and which stop it.
    """

    density: Density
    rows: Rows
    fitted: torch.Tensor
    held_out: torch.Tensor
    recipe: Recipe
    max_steps: int | None
    max_minutes: float | None
    seed: int


def learned(
    estimator: NITSDensity, rows: Rows, units: NDArray[np.float64], plan: Plan, seed: int
) -> list[Member]:
    """Returns the members, all of them but those that an interrupt came before.

    units: What to add to the log-density of each row to have it in the table's units.
    """
    tasks = _tasks(estimator, rows, plan, seed)
    workers = _workers(tasks)
    waves = math.ceil(len(tasks) / workers)
    tasks = [task._replace(max_minutes=_share(task.max_minutes, waves)) for task in tasks]
    results = Local(workers).run(trained, tasks, progress=estimator.verbose)
    found = []
    for task, result in zip(tasks, results, strict=True):
        if result is not None:
            kept = rows.view(task.held_out)
            figure = _in_units(result[1], kept, units[task.held_out.numpy()])
            found.append(Member(*result, figure, _weight(kept)))
    if not found:
        raise KeyboardInterrupt
    return found


def trained(task: Task, reporter: Reporter) -> tuple[Density, dict[str, Any]]:
    """Trains a network, and returns it with its history."""
    kept = task.rows.view(task.held_out)
    history = train(
        task.density,
        task.rows.view(task.fitted),
        validation=kept if len(kept) else 0.0,
        recipe=task.recipe,
        max_steps=task.max_steps,
        max_minutes=task.max_minutes,
        seed=task.seed,
        progress=reporter,
    )
    return task.density, history.to_dict()


def mixed(members: list[Member]) -> Density:
    """Returns the mixture of the members, or the only one."""
    first, *others = members
    return Mixture([member.density for member in members]) if others else first.density


def history(members: list[Member]) -> dict[str, Any]:
    """Returns the training history of the first member, and those of the others in it."""
    first, *others = members
    return {**first.history, "others": [member.history for member in others]}


def held_out(members: list[Member]) -> float | None:
    """Returns the mean log-density of held-out rows, each under the member that held it out."""
    known = [member for member in members if member.held_out is not None]
    if not known:
        return None
    weights = [member.weight for member in known]
    return float(np.average([member.held_out for member in known], weights=weights))


def folds(count: int, estimator: NITSDensity, seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns the rows that each member learns from, and those that it holds out.

    No row is held out by two members, if there are rows enough.
    """
    fraction, members = estimator.validation_fraction, estimator.members
    if members == 1:
        return [parted(count, fraction, seed)]
    size = int(count * min(fraction, 1 / members))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    if size < 1 or count - size < 2:
        return [(torch.arange(count), torch.arange(0))] * members
    cuts = [(k * size, (k + 1) * size) for k in range(members)]
    return [(torch.cat([order[:a], order[b:]]), order[a:b]) for a, b in cuts]


def _built(estimator: NITSDensity, plan: Plan, seed: int) -> Density:
    """Returns a network with initial weights."""
    density = NITS.mlp(
        [column.head(tuple(estimator.pnn), plan.knots) for column in estimator.schema_.columns],
        hidden=estimator.hidden or plan.hidden,
        blocks=plan.blocks if estimator.blocks is None else estimator.blocks,
        dropout=plan.dropout if estimator.dropout is None else estimator.dropout,
        context=estimator.context_width,
        order=estimator.order_,
        codes=plan.codes,
        generator=seed,
    )
    return Whitened(density) if estimator.whiten else density


def _tasks(estimator: NITSDensity, rows: Rows, plan: Plan, seed: int) -> list[Task]:
    recipe = Recipe(
        batch_size=plan.batch_size,
        learning_rate=estimator.learning_rate or plan.learning_rate,
        optimizer=plan.optimizer,
    )
    minutes = estimator.max_minutes
    steps = estimator.max_steps if estimator.max_steps or minutes else plan.steps
    return [
        Task(_built(estimator, plan, seed + k), rows, *parts, recipe, steps, minutes, seed + k)
        for k, parts in enumerate(folds(len(rows), estimator, seed))
    ]


def _workers(tasks: list[Task]) -> int:
    """Returns the number of processes to train in: 1, this one, if others cost more than they save.

    Results do not depend on it, unless the budget is in minutes.
    """
    work = sum(_seconds(task) for task in tasks)
    return min(available(), len(tasks)) if work >= WORTH_PROCESSES else 1


def _seconds(task: Task) -> float:
    """Returns about how long training takes on one core."""
    minutes = math.inf if task.max_minutes is None else task.max_minutes
    steps = math.inf if task.max_steps is None else task.max_steps
    weights = min(task.recipe.batch_size, len(task.rows)) * task.density.weights_per_row
    return min(60 * minutes, steps * (STEP_SECONDS + WEIGHT_SECONDS * weights))


def _share(minutes: float | None, waves: int) -> float | None:
    """Returns the time for one member, if so many train one after another."""
    return None if minutes is None else minutes / waves


def _in_units(history: dict[str, Any], kept: Rows, units: NDArray[np.float64]) -> float | None:
    """Returns the mean log-density of held-out rows in the table's units, weighted if they are."""
    if not len(kept):
        return None
    weight = None if kept.weights is None else kept.weights.double().numpy()
    return float(history["final_validation"] + np.average(units, weights=weight))


def _weight(kept: Rows) -> float:
    return float(len(kept)) if kept.weights is None else float(kept.weights.sum())
