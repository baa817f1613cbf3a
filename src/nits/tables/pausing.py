"""Members that learn in two parts, so that no worker stands idle while the last ones learn.

Five members on two workers take as long as three, one after another, unless one of them learns its
first half before the others and its second half after them. What it has learned is the same: it
goes on from a checkpoint of the first part, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nits.engines.engine import Later
from nits.tables import sharing
from nits.tables.tasks import Task
from nits.training.progress import Reporter, Unmarked

LEAST_SECONDS = 10.0
"""Of training that a member is cut for: to stop and to go on takes about a second."""

EQUAL = 0.8
"""Of the time of the longest, what all members must take: others would not fit together."""


def cut(every: Sequence[Task], parallel: int) -> list[Task]:
    """Returns the tasks, of which some are to learn in two parts.

    The rule is McNaughton's: members are put in a line, and the line is cut into as many equal
    lengths as there are workers. Where a cut is inside a member, one worker begins with the part
    behind the cut, and another ends with as much as lies before it.
    """
    found, trained = list(every), sharing.trained(every)
    which = [k for k, task in enumerate(every) if task.recipe is not None]
    if len(trained) <= parallel or not _alike(trained):
        return found
    for worker in range(1, parallel):
        share, k = math.modf(worker * len(which) / parallel)
        if share:
            found[which[int(k)]] = found[which[int(k)]]._replace(cut=1 - share)
    return found


def _alike(trained: Sequence[Task]) -> bool:
    """Returns whether members, by their steps, learn about as long as each other, and long."""
    if any(task.max_minutes is not None for task in trained):
        return False
    seconds = [sharing.seconds(task) for task in trained]
    return min(seconds) >= max(LEAST_SECONDS, EQUAL * max(seconds))


def order(every: Sequence[Task]) -> list[int]:
    """Returns the order in which tasks begin: those that will go on later first."""
    return sorted(range(len(every)), key=lambda k: every[k].cut is None)


class Pausing(Unmarked):
    """A reporter that ends the first part of a member's training.

    share: Of the whole, that the first part is.
    """

    def __init__(self, reporter: Reporter, share: float) -> None:
        self.reporter, self.share = reporter, share
        self.paused = False

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Passes the figures on; raises KeyboardInterrupt when the first part is done."""
        self.reporter.update(progress, train, validation, rows_per_second)
        if self.share <= progress < 1:
            self.paused = True
            raise KeyboardInterrupt

    def notice(self, text: str) -> None:
        """Passes the sentence on."""
        self.reporter.notice(text)

    def interrupted(self) -> None:
        """Passes on that the user has interrupted training."""
        if not self.paused:
            self.reporter.interrupted()


@contextmanager
def checkpoint(task: Task) -> Iterator[Path]:
    """Yields where the first part of a member is kept, be it for a moment."""
    with TemporaryDirectory(prefix="nits-part-") as folder:
        yield task.place or Path(folder, "part.safetensors")


def later(task: Task, place: Path, go_on: Callable[..., Any]) -> Later:
    """Returns the rest of a member's work, which begins with the checkpoint of its first part.

    go_on: Called with a task, a reporter, and the checkpoint if it is not the task's own.
    """
    if task.place is not None or not place.is_file():
        return Later(partial(_rest, go_on, None))
    return Later(partial(_rest, go_on, place.read_bytes()))


def _rest(go_on: Callable[..., Any], state: bytes | None, task: Task, reporter: Reporter) -> Any:
    whole = task._replace(cut=None)
    if state is None:
        return go_on(whole, reporter)
    with TemporaryDirectory(prefix="nits-part-") as folder:
        place = Path(folder, "part.safetensors")
        place.write_bytes(state)
        return go_on(whole, reporter, place)
