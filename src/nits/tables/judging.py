"""What rows that members held out say of each sort of them: weights, and an honest figure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nits.tables import stacking
from nits.tables.tasks import Learned, Task
from nits.training.rows import Rows

Numbers = NDArray[np.float64]


class Units(Protocol):
    """What to add to the log-densities of rows to have them in the table's units; an array."""

    def __getitem__(self, index: NDArray[np.int64], /) -> Numbers: ...


Done = list[tuple[Task, Learned]]
"""Tasks, and what became of them."""


class Judged(NamedTuple):
    """What the rows that were held out say of each sort of members.

    shares: The weight of each sort, by name.
    alone: The mean log-density of those rows under each sort.
    which, weight: Which rows they are, and how much each counts; None if all count the same.
    said: Their log-densities under the mixture, in the table's units.
    """

    shares: dict[str, float]
    alone: dict[str, float | None]
    which: NDArray[np.int64]
    weight: Numbers | None
    said: Numbers

    @property
    def kept(self) -> set[str]:
        """The sorts with a weight."""
        return {sort for sort, share in self.shares.items() if share > 0}

    @property
    def figures(self) -> tuple[float | None, float | None]:
        """The mean log-density of those rows under the mixture, and its standard error."""
        return _figures(self.said, self.weight)

    def raised(self, which: NDArray[np.int64], by: Numbers) -> Judged:
        """Returns the same with log-densities of some rows raised."""
        more = np.zeros(max([*self.which, *which], default=0) + 1)
        more[which] = by
        return self._replace(said=self.said + more[self.which])


def judged(done: Done, rows: Rows, units: Units, worth_per_row: float = 0.0) -> Judged:
    """Weighs members by what they say of rows that they held out, equation (30).

    units: What to add to the log-density of each row to have it in the table's units.
    worth_per_row: Nats that a sort of networks must add to have a weight beside another.
    """
    sorts = list(dict.fromkeys(task.sort for task, _ in done))
    index, scores = _table(done, sorts)
    weight = rows.view(index).weights
    by_row = None if weight is None else weight.double().numpy()
    simple = {task.sort for task, _ in done if task.recipe is None}
    w = stacking.weights(scores, by_row, worth_per_row, [sort in simple for sort in sorts])
    own = scores + units[index.numpy()][:, None]
    alone = [_figures(column, by_row)[0] for column in own.T]
    return Judged(
        dict(zip(sorts, w.tolist(), strict=True)),
        dict(zip(sorts, alone, strict=True)),
        index.numpy(),
        by_row,
        stacking.mixed(own, w),
    )


def _table(done: Done, sorts: list[str]) -> tuple[torch.Tensor, NDArray[np.float64]]:
    """Returns the rows that all sorts held out, and their scores under each, shape (N, S)."""
    each: dict[int, dict[str, list[Numbers]]] = {}
    rows: dict[int, torch.Tensor] = {}
    for task, result in done:
        each.setdefault(task.fold, {}).setdefault(task.sort, []).append(result.scores)
        rows[task.fold] = task.held_out
    found = {
        fold: {sort: _mean(scores) for sort, scores in by_sort.items()}
        for fold, by_sort in each.items()
    }
    whole = [fold for fold, by_sort in found.items() if len(by_sort) == len(sorts)]
    if not whole:
        return torch.empty(0, dtype=torch.long), np.empty((0, len(sorts)))
    columns = [np.concatenate([found[fold][sort] for fold in whole]) for sort in sorts]
    return torch.cat([rows[fold] for fold in whole]), np.stack(columns, 1)


def _mean(scores: list[Numbers]) -> Numbers:
    """Returns the log-densities of rows under members in equal parts."""
    return stacking.mixed(np.stack(scores, 1), np.full(len(scores), 1 / len(scores)))


def _figures(
    said: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> tuple[float | None, float | None]:
    """Returns the mean of held-out rows, and its standard error."""
    if not len(said):
        return None, None
    share = np.full(len(said), 1 / len(said)) if weight is None else weight / weight.sum()
    mean = float(share @ said)
    return mean, float(np.sqrt(np.sum((share * (said - mean)) ** 2)))
