"""How members share the cores and the minutes that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nits.engines.local import available
from nits.model import side_by_side
from nits.tables.defaults import PNN_WEIGHT, STEP
from nits.tables.tasks import Task
from nits.training import ranks
from nits.training.streamed import Streamed
from nits.training.team import fits

WORTH_PROCESSES = 10.0
"""Seconds of training from which processes are started, which takes about 3 seconds."""

AT_ONCE = 2**20
"""PNN weights of a step up to which networks take it together: of more, each has its own cache."""

Team = tuple[Task, ...]
"""Tasks that one process does: of one, or of networks of one shape, which learn together."""


def teams(every: Sequence[Task], parallel: int) -> list[Team]:
    """Returns the tasks in teams, the first ones first.

    A small network takes longer to call than to compute, so those of one shape learn together; but
    not in so large teams that cores would stand idle. Results do not depend on it.

    parallel: How many teams run at a time.
    """
    alike: dict[object, list[Task]] = {}
    for k, task in enumerate(every):
        alike.setdefault(_shape(task) or k, []).append(task)
    found = [tuple(some) for tasks in alike.values() for some in _cut(tasks, _most(tasks[0]))]
    while len(trained(found)) < parallel and max(map(len, found), default=0) > 1:
        largest = max(range(len(found)), key=lambda k: len(found[k]))
        whole = found[largest]
        found[largest : largest + 1] = _cut(whole, math.ceil(len(whole) / 2))
    places = {id(task): k for k, task in enumerate(every)}
    return sorted(found, key=lambda team: places[id(team[0])])


def _shape(task: Task) -> tuple[object, ...] | None:
    """Returns what tasks must share to learn together; None if this one cannot."""
    shape = side_by_side.shape(task.density)
    if task.recipe is None or isinstance(task.rows, Streamed) or not ranks.current().alone:
        return None
    if not fits(task.density, len(task.rows)):
        return None
    sizes = len(task.fitted), len(task.held_out), task.max_steps, task.max_minutes
    return None if shape is None else (shape, task.recipe, *sizes)


def _most(task: Task) -> int:
    """Returns how many tasks of a shape learn together."""
    return max(1, AT_ONCE // max(1, _weights(task)))


def _weights(task: Task) -> int:
    """Returns the number of PNN weights of a step."""
    batch = 0 if task.recipe is None else min(task.recipe.batch_size, len(task.rows))
    return batch * task.density.weights_per_row


def _cut(tasks: Sequence[Task], most: int) -> list[Team]:
    """Returns the tasks in teams of at most so many, as equal as can be."""
    count = math.ceil(len(tasks) / most)
    return [tuple(tasks[k::count]) for k in range(count)]


def cores(every: Sequence[Task], later: float = 0.0) -> int:
    """Returns how many processes to train in: 1, this one, if others cost more than they save.

    later: Seconds of training that will follow, for which the processes wait.
    """
    return available() if later + seconds([every]) >= WORTH_PROCESSES else 1


def workers(every: Sequence[Team], later: float = 0.0) -> int:
    """Returns the number of processes to train teams in.

    A few more than there are cores, if none of these then stands idle at the end: three teams that
    take as long as one another keep two cores busy in three processes only. Results do not depend
    on it, unless the budget is in minutes.

    later: Seconds of training that will follow, for which the processes wait.
    """
    count = len(trained(every))
    most = cores([task for some in every for task in some], later)
    if most == 1 or count <= most:
        return max(1, min(most, len(every)))
    return next((n for n in range(most, 2 * most) if count % n == 0), most)


def timed(every: Sequence[Team], minutes: float, count: int, parallel: int) -> list[Team]:
    """Returns the teams of a round, each with the minutes that it has on the clock.

    minutes: Of all rounds.
    count: Networks of all rounds.
    parallel: How many teams run at a time.
    """
    networks = trained(every)
    here = sum(map(len, networks))
    each = minutes * here / max(count, here) / max(1, math.ceil(len(networks) / parallel))
    return [tuple(task._replace(max_minutes=each) for task in team) for team in every]


def trained(every: Sequence[Team]) -> list[Team]:
    """Returns the teams that take time: networks."""
    return [team for team in every if team[0].recipe is not None]


def seconds(every: Sequence[Sequence[Task]]) -> float:
    """Returns about how long training takes on one core."""
    total = 0.0
    for task in (task for some in every for task in some if task.recipe is not None):
        minutes = math.inf if task.max_minutes is None else task.max_minutes
        steps = math.inf if task.max_steps is None else task.max_steps
        total += min(60 * minutes, steps * (STEP + PNN_WEIGHT * _weights(task)))
    return total
