"""How members share the cores and the minutes that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nits.engines.local import available
from nits.tables.defaults import PNN_WEIGHT, STEP
from nits.tables.tasks import Task

WORTH_PROCESSES = 10.0
"""Seconds of training from which processes are started, which takes about 3 seconds."""


def workers(every: Sequence[Task], later: float = 0.0) -> int:
    """Returns the number of processes to train in: 1, this one, if others cost more than they save.

    A few more than there are cores, if none of these then stands idle at the end: three members as
    long as one another keep two cores busy in three processes only. Results do not depend on it,
    unless the budget is in minutes.

    later: Seconds of training that will follow, for which the processes wait.
    """
    if later + sum(seconds(task) for task in every) < WORTH_PROCESSES:
        return 1
    cores, count = available(), len(trained(every))
    if cores == 1 or count <= cores:
        return max(1, min(cores, len(every)))
    return next((n for n in range(cores, 2 * cores) if count % n == 0), cores)


def timed(every: Sequence[Task], minutes: float, count: int, parallel: int) -> list[Task]:
    """Returns the tasks of a round, each with the minutes that it has on the clock.

    minutes: Of all rounds.
    count: Networks of all rounds.
    parallel: How many tasks run at a time.
    """
    here = len(trained(every))
    each = minutes * here / max(count, here) / max(1, math.ceil(here / parallel))
    return [task._replace(max_minutes=each) for task in every]


def trained(every: Sequence[Task]) -> list[Task]:
    """Returns the tasks that take time: networks."""
    return [task for task in every if task.recipe is not None]


def seconds(task: Task) -> float:
    """Returns about how long training takes on one core."""
    if task.recipe is None:
        return 0.0
    minutes = math.inf if task.max_minutes is None else task.max_minutes
    steps = math.inf if task.max_steps is None else task.max_steps
    weights = min(task.recipe.batch_size, len(task.rows)) * task.density.weights_per_row
    return min(60 * minutes, steps * (STEP + PNN_WEIGHT * weights))
