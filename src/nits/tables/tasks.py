"""What members of a model are to learn: which network or simple density, from which rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.tables import networks
from nits.tables.defaults import Plan, Style
from nits.training.recipe import Recipe
from nits.training.rows import Rows, parted
from nits.training.streamed import Besides, Streamed

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

TOLD_BY = 500
"""Held-out rows by which styles are told apart on one fold; with fewer, two folds are."""


class Task(NamedTuple):
    """What one member needs to learn, here or in another process.

    sort: Members of one sort, on different folds, share a weight.
    about: Its PNNs and hats, for a file.
    rows: All rows, the same for every member.
    fitted, held_out: Which of them it learns from, and which stop it.
    recipe: How it is trained; None for a density that is only started from the rows.
    place, course: The file that keeps it, and the fit that it belongs to; see `nits.tables.resume`.
    """

    density: Density
    sort: str
    about: dict[str, Any]
    fold: int
    rows: Rows
    fitted: torch.Tensor | Besides
    held_out: torch.Tensor
    recipe: Recipe | None
    max_steps: int | None
    max_minutes: float | None
    seed: int
    place: Path | None = None
    course: str = ""


class Learned(NamedTuple):
    """What became of a task.

    density, history: What it learned, and how; no history of a simple member.
    scores: Log-densities of the rows that it held out.
    """

    density: Density
    history: dict[str, Any] | None
    scores: NDArray[np.float64]


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


class Course(NamedTuple):
    """Who learns what, in two rounds.

    In the first round networks of all styles and simple densities learn from the same folds. The
    networks that are left then have the styles that the first round kept, on further folds, as many
    on each as there were styles: a mixture of these tells how broad that of all networks is. If the
    first ones have stopped early, there are more than there seemed to be time for.

    parts: The folds: rows to learn from, and rows to hold out.
    tried: How many folds the first round has.
    """

    estimator: NITSDensity
    rows: Rows
    plan: Plan
    seed: int
    parts: Sequence[tuple[torch.Tensor | Besides, torch.Tensor]]
    tried: int

    @classmethod
    def of(cls, estimator: NITSDensity, rows: Rows, plan: Plan, seed: int) -> Course:
        """Returns the course for a table's rows."""
        fraction, styles = estimator.validation_fraction, len(plan.styles[: plan.members])
        tried = 1 if len(rows) * fraction >= TOLD_BY else 2
        if styles == 1:  # there is nothing to choose, so all learn side by side
            tried = plan.members
        left = max(plan.wanted - tried * styles, 0)
        number = tried + math.ceil(left / styles) if left else math.ceil(plan.members / styles)
        parts: Sequence[tuple[torch.Tensor | Besides, torch.Tensor]]
        if isinstance(rows, Streamed):
            parts = rows.folds(number, fraction, seed)
        else:
            parts = folds(len(rows), number, fraction, seed)
        return cls(estimator, rows, plan, seed, parts, tried)

    def first(self) -> list[Task]:
        """Returns the first round: networks of all styles, fold by fold, and simple members."""
        styles = self.plan.styles[: self.plan.members]
        count = min(self.plan.members, self.tried * len(styles))
        found = [self.network(k, k // len(styles), styles[k % len(styles)]) for k in range(count)]
        if self.plan.members == 1:
            return found
        return [*found, *self._simple(found)]

    def second(self, kept: Collection[str], spent: Sequence[int] = ()) -> list[Task]:
        """Returns the second round: networks of the sorts that were kept, and simple members.

        spent: The steps that each network of the first round took.
        """
        every = self.plan.styles[: self.plan.members]
        styles = [style for style in every if style.name in kept]
        begun = self.tried * len(every)
        count = max(self.plan.members - begun, self._more(spent), 0) if styles else 0
        found = [
            self.network(begun + k, self.tried + k // len(every), styles[k % len(styles)])
            for k in range(count)
        ]
        return [*found, *self._simple(found)]

    def _more(self, spent: Sequence[int]) -> int:
        """Returns how many more networks there is time for, if each takes as many steps."""
        if not sum(spent):
            return 0
        fitting = (self.plan.fitting - sum(spent)) / (sum(spent) / len(spent))
        begun = self.tried * len(self.plan.styles[: self.plan.members])
        return int(min(fitting, self.plan.wanted - begun))

    def network(self, k: int, fold: int, style: Style, order: Sequence[int] | None = None) -> Task:
        """Returns what the network number k is to learn.

        order: Of its columns; by default that of its fold.
        """
        plan, estimator = self.plan, self.estimator
        several = estimator.orders_
        sketch = estimator.sketch_._replace(order=order or several[fold % len(several)])
        minutes = estimator.max_minutes
        about = {
            "pnn": list(style.pnn),
            "knots": plan.knots if style.hats else 0,
            "whiten": style.whiten,
        }
        if len(several) > 1:
            about["order"] = list(sketch.order or ())
        recipe = Recipe(
            batch_size=plan.batch_size,
            learning_rate=plan.learning_rate,
            weight_decay=style.weight_decay,
            optimizer=plan.optimizer,
        )
        return Task(
            networks.network(sketch, style, plan, self.seed + k),
            style.name,
            about,
            fold,
            self.rows,
            *self.parts[fold],
            recipe,
            estimator.max_steps if estimator.max_steps or minutes else plan.steps,
            minutes,
            self.seed + k,
        )

    def _simple(self, trained: list[Task]) -> list[Task]:
        """Returns simple members for the folds of networks."""
        by_fold = {task.fold: task for task in trained}
        sketch = self.estimator.sketch_
        return [
            task._replace(
                density=density, sort=sort, about=networks.simple_about(density), recipe=None
            )
            for task in by_fold.values()
            for sort in networks.simple_sorts(sketch, len(self.rows))
            for density in [networks.simple(sketch, sort)]
        ]
