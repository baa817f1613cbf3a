"""What members of a model are to learn: which network or simple density, from which rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from nits.model.density import Density
from nits.tables import networks
from nits.tables.defaults import Plan
from nits.tables.networks import Sketch
from nits.training.recipe import Recipe
from nits.training.rows import Rows, parted

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

SIMPLE_PNN = (32,)
"""Units of the PNNs of simple members."""


class Task(NamedTuple):
    """What one member needs to learn, here or in another process.

    sort: Members of one sort, on different folds, share a weight.
    about: Its PNNs and hats, for a file.
    rows: All rows, the same for every member.
    fitted, held_out: Which of them it learns from, and which stop it.
    recipe: How it is trained; None for a density that is only started from the rows.
    """

    density: Density
    sort: str
    about: dict[str, Any]
    fold: int
    rows: Rows
    fitted: torch.Tensor
    held_out: torch.Tensor
    recipe: Recipe | None
    max_steps: int | None
    max_minutes: float | None
    seed: int


def folds(
    count: int, number: int, fraction: float, seed: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns the rows that networks of each fold learn from, and those that they hold out.

    No row is in two folds, if there are rows enough.
    """
    lone = parted(count, fraction, seed)
    if number == 1:
        return [lone]
    size = int(count * min(fraction, 1 / number))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    if size < 1 or count - size < 2:
        return [(torch.arange(count), torch.arange(0))] * number
    cuts = [(k * size, (k + 1) * size) for k in range(number)]
    return [(torch.cat([order[:a], order[b:]]), order[a:b]) for a, b in cuts]


def of_networks(
    estimator: NITSDensity, sketch: Sketch, rows: Rows, plan: Plan, seed: int
) -> list[Task]:
    """Returns the networks to train: all styles on the first fold, then on the next."""
    styles = plan.styles[: plan.members]
    parts = folds(
        len(rows), math.ceil(plan.members / len(styles)), estimator.validation_fraction, seed
    )
    minutes = estimator.max_minutes
    steps = estimator.max_steps if estimator.max_steps or minutes else plan.steps
    tasks = []
    for k in range(plan.members):
        fold, style = k // len(styles), styles[k % len(styles)]
        about = {
            "pnn": list(style.pnn),
            "knots": plan.knots if style.hats else 0,
            "whiten": style.whiten,
        }
        recipe = Recipe(
            batch_size=plan.batch_size,
            learning_rate=plan.learning_rate,
            weight_decay=style.weight_decay,
            optimizer=plan.optimizer,
        )
        tasks.append(
            Task(
                networks.network(sketch, style, plan, seed + k),
                style.name,
                about,
                fold,
                rows,
                *parts[fold],
                recipe,
                steps,
                minutes,
                seed + k,
            )
        )
    return tasks


def of_simple(sketch: Sketch, trained_ones: list[Task]) -> list[Task]:
    """Returns simple members for the folds of networks; none beside a lone network."""
    if len(trained_ones) == 1:
        return []
    by_fold = {task.fold: task for task in trained_ones}
    about = {"pnn": list(SIMPLE_PNN), "knots": 0, "whiten": False}
    return [
        task._replace(
            density=networks.simple(sketch, sort, SIMPLE_PNN), sort=sort, about=about, recipe=None
        )
        for task in by_fold.values()
        for sort in (networks.LINEAR, networks.INDEPENDENT)
    ]
