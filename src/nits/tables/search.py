"""The order of the columns by held-out rows: short trials of orders, of which half go on, longer.

All trials of a round are networks of the same style, seed, rows and steps, and differ in the order
alone. The order of the table takes part in every round, and stays unless another one is ahead of it
by more than two standard errors of the difference, row by row.
"""

from __future__ import annotations

import math
from sys import stderr
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.engines.local import Local, available
from nits.tables import orders, sharing, told
from nits.tables.defaults import Plan
from nits.tables.judging import Units
from nits.tables.minutes import TRIALS
from nits.tables.tasks import Course, Task
from nits.tables.teaching import taught
from nits.training import ranks
from nits.training.crew import INTERRUPTED
from nits.training.rows import Rows, parted
from nits.training.streamed import Streamed

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

LEAST = 100
"""Steps of the shortest trial: fewer orders are tried if there is no time for more."""

LAST = 3
"""Orders in the last round: that of the table, and those that it is compared with."""

JUDGED_BY = 4_000
"""The most held-out rows that judge an order."""

ERRORS = 2.0
"""Standard errors by which an order must be ahead of the table's."""

MIXED = 3
"""The most orders of members, if there are several."""

NEAR = math.log(2)
"""Nats per row by which another order of theirs may be behind the best: half as likely."""


class Trial(NamedTuple):
    """What a trial of an order has shown.

    name, order: What the order is called, and its positions.
    steps: How long the trial was.
    held_out: Mean log-density of held-out rows, in the table's units.
    ahead, error: By how much it is ahead of the table's order in a trial as long, and the standard
        error of this.
    chosen: Whether members have this order.
    """

    name: str
    order: list[int]
    steps: int
    held_out: float
    ahead: float
    error: float
    chosen: bool = False


class Found(NamedTuple):
    """The orders of the members, fold by fold, and the trials that decided, the best first.

    None is the order of the table.
    """

    orders: list[list[int] | None]
    trials: list[Trial]


def decided(estimator: NITSDensity, rows: Rows, units: Units, plan: Plan, seed: int) -> Found:
    """Returns the order that the user lists, or calls for; by default that of a search.

    units: What to add to the log-density of each row to have it in the table's units.
    """
    order, names = estimator.order, estimator.schema_.names
    first = orders.listed(order, names)
    if order == orders.AS_IT_IS or (order is None and not by_default(estimator, rows, plan)):
        return Found([None], [])
    called = order if isinstance(order, str) else None
    numbers = torch.as_tensor(rows.x).numpy()
    if called == orders.GREEDY:
        return Found([orders.greedy(numbers)], [])
    if len(first) == len(names):
        return Found([first], [])
    columns = enumerate(estimator.schema_.columns)
    categories = [i for i, column in columns if column.kind == "categorical"]
    every = orders.candidates(first, numbers, categories)
    trials = Search.of(estimator, rows, units, plan, seed).trials(every)
    found = chosen(trials, every, MIXED if called == orders.SEVERAL else 1)
    if estimator.verbose and trials:
        lines = told.orders(found.trials, names)
        print("orders of the columns:", *lines, sep="\n", file=stderr)
    return found


def by_default(estimator: NITSDensity, rows: Rows, plan: Plan) -> bool:
    """Returns whether orders are tried though the user has called for none.

    Not for a lone network, which has no steps to spare, nor beyond memory. Where a clock ends
    the trials, another run may find another order, which a checkpoint could not go on with.
    """
    own = estimator.members is None and estimator.max_steps is None and plan.members > 1
    steady = estimator.checkpoint is None or estimator.max_minutes is None
    return own and steady and not isinstance(rows, Streamed) and ranks.current().alone


def chosen(trials: list[Trial], every: dict[str, list[int]], count: int) -> Found:
    """Returns so many orders, the best first: that of the table, unless another one is ahead."""
    longest = max((trial.steps for trial in trials), default=0)
    clear = [
        trial for trial in trials if trial.steps == longest and trial.ahead > ERRORS * trial.error
    ]
    best = clear[0].name if clear else orders.TABLE
    ranked = sorted((t for t in trials if t.name != best), key=lambda trial: -trial.ahead)
    level = clear[0].ahead if clear else 0.0
    kept = [best, *(trial.name for trial in ranked if trial.ahead > level - NEAR)][:count]
    marked = [trial._replace(chosen=trial.name in kept) for trial in trials]
    return Found([every[name] for name in kept], marked)


class Search(NamedTuple):
    """Trials of orders.

    fitted, held_out: Which rows trials learn from, and which judge them: drawn anew, so that the
        figures of the members' folds stay honest.
    budget: Steps of all trials together.
    longest: Steps of a member, and so of the longest trial.
    """

    estimator: NITSDensity
    course: Course
    units: Units
    fitted: torch.Tensor
    held_out: torch.Tensor
    budget: float
    longest: int

    @classmethod
    def of(cls, estimator: NITSDensity, rows: Rows, units: Units, plan: Plan, seed: int) -> Search:
        """Returns the search for a table's rows."""
        course = Course.of(estimator, rows, plan, seed)
        fitted, held_out = parted(len(rows), estimator.validation_fraction, seed + 1)
        steps = estimator.max_steps or plan.steps
        budget = TRIALS * plan.members * steps
        return cls(estimator, course, units, fitted, held_out[:JUDGED_BY], budget, steps)

    def trials(self, every: dict[str, list[int]]) -> list[Trial]:
        """Returns the last trial of each order that was tried, the longest first, then the best."""
        if not len(self.held_out) or len(every) < 2:
            return []
        kept, found = list(every), dict[str, Trial]()
        planned = self.planned(len(kept))
        total = sum(size * steps for size, steps in planned)
        for count, steps in planned:
            best = sorted(kept[1:], key=lambda name: -found[name].ahead if found else 0.0)
            kept = [kept[0], *best[: count - 1]]
            tasks = [self._task(every[name], steps, steps / total) for name in kept]
            found |= self._judged(kept, tasks)
        return sorted(found.values(), key=lambda trial: (-trial.steps, -trial.ahead))

    def planned(self, count: int) -> list[tuple[int, int]]:
        """Returns of each round how many of the orders are tried, and for how many steps."""
        return [(size, min(steps, self.longest)) for size, steps in rounds(count, self.budget)]

    def _judged(self, names: list[str], tasks: list[Task]) -> dict[str, Trial]:
        """Tries orders side by side; the first one is what the others are compared with."""
        scores = self._scores(tasks)
        weight = self.course.rows.view(self.held_out).weights
        by_row = np.ones(len(self.held_out)) if weight is None else weight.double().numpy()
        here = np.isfinite(scores).all(0)
        by_row, units = by_row[here], self.units[self.held_out.numpy()][here]
        found = {}
        for name, task, said in zip(names, tasks, scores[:, here], strict=True):
            ahead, error = _mean(said - scores[0, here], by_row)
            order, steps = task.density.order.tolist(), task.max_steps or 0
            found[name] = Trial(name, order, steps, _mean(said + units, by_row)[0], ahead, error)
        return found

    def _scores(self, tasks: list[Task]) -> NDArray[np.float64]:
        """Returns log-densities of the held-out rows in each trial, shape (trials, N)."""
        engine = self.estimator.engine or Local(
            sharing.workers([(task,) for task in tasks], self._later())
        )
        results = engine.run(taught, tasks, progress=self.estimator.verbose, label="orders")
        found = []
        for result in results:
            if result is None or (result.history or {})["stopped"] == INTERRUPTED:
                raise KeyboardInterrupt
            found.append(result.scores)
        return np.stack(found)

    def _later(self) -> float:
        """Returns about how long the members take of one core that are trained after the trials."""
        task = self.course.network(0, 0, self.course.plan.styles[0])
        return self.course.plan.members * sharing.seconds([[task]])

    def _task(self, order: list[int], steps: int, share: float) -> Task:
        """Returns a trial, which has a share of the minutes of all trials."""
        task = self.course.network(0, 0, self.course.plan.styles[0], order)
        minutes = self.estimator.max_minutes
        return task._replace(
            fitted=self.fitted,
            held_out=self.held_out,
            max_steps=steps,
            max_minutes=None if minutes is None else TRIALS * minutes * available() * share,
        )


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the weighted mean of rows, and its standard error."""
    if not weight.sum() > 0:
        return 0.0, 0.0
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt(np.sum((share * (values - mean)) ** 2)))


def rounds(count: int, budget: float) -> list[tuple[int, int]]:
    """Returns of each round how many orders are tried, and for how many steps, twice as many each.

    budget: Steps of all trials together.
    """
    while count > 2 and LEAST * _work(_halved(count)) > budget:
        count -= 1
    sizes = _halved(count)
    steps = max(LEAST, int(budget / _work(sizes)))
    return [(size, steps << k) for k, size in enumerate(sizes)]


def _halved(count: int) -> list[int]:
    sizes = [count]
    while sizes[-1] > LAST:
        sizes.append(max(LAST, math.ceil(sizes[-1] / 2)))
    return sizes


def _work(sizes: list[int]) -> int:
    return sum(size << k for k, size in enumerate(sizes))
