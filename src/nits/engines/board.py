"""What the tasks of a run say of themselves, in an array that all their processes see."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nits.training.progress import INTERRUPTED, Reporter, Unmarked

WAITING, RUNNING, DONE = 0.0, 1.0, 2.0
STATE, PROGRESS, TRAIN, VALIDATION, SPEED = range(5)


class Board:
    """The latest figures of each task, and whether all of them shall stop.

    figures: Shape (tasks + 1, 5), one row per task; the last row begins with the wish to stop.
    """

    def __init__(self, figures: NDArray[np.float64]) -> None:
        self.figures = figures
        self.speed = 0.0

    @classmethod
    def in_memory(cls, tasks: int) -> Board:
        """Returns a board for tasks of this process."""
        return cls(np.zeros((tasks + 1, 5)))._without_figures()

    @classmethod
    def created(cls, place: Path, tasks: int) -> Board:
        """Returns a board in a new file, for tasks of several processes."""
        board = cls(np.memmap(place, np.float64, "w+", shape=(tasks + 1, 5)))
        return board._without_figures()

    @classmethod
    def opened(cls, place: Path) -> Board:
        """Returns the board that another process created."""
        return cls(np.memmap(place, np.float64, "r+").reshape(-1, 5))

    def _without_figures(self) -> Board:
        self.figures[:, TRAIN : VALIDATION + 1] = math.nan
        return self

    @property
    def stopped(self) -> bool:
        """Whether the tasks shall stop, and no other begin."""
        return bool(self.figures[-1, 0])

    def stop(self) -> None:
        """Tells all tasks to stop."""
        self.figures[-1, 0] = 1.0

    def enter(self, task: int, state: float) -> None:
        """Notes that a task has begun or is done."""
        self.figures[task, STATE] = state

    def is_done(self, task: int) -> bool:
        """Returns whether a task has come to its end."""
        return bool(self.figures[task, STATE] == DONE)

    def show(self, bar: Reporter) -> None:
        """Shows how all tasks together go: means of those that run, and the sum of their speeds."""
        tasks = np.array(self.figures[:-1])
        running = tasks[tasks[:, STATE] == RUNNING]
        if len(running):
            self.speed = float(running[:, SPEED].sum())
        told = running if len(running) else tasks[tasks[:, STATE] == DONE]
        progress = np.where(tasks[:, STATE] == DONE, 1.0, tasks[:, PROGRESS]).mean()
        validation = _mean(told[:, VALIDATION])
        known = None if math.isnan(validation) else validation
        bar.update(float(progress), _mean(told[:, TRAIN]), known, self.speed)


class Line(Unmarked):
    """The reporter of one task, which writes on a board.

    tell: Takes sentences for the user.
    changed: Called after new figures.
    """

    def __init__(
        self,
        board: Board,
        task: int,
        tell: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.board = board
        self.task = task
        self.tell = tell
        self.changed = changed

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Writes the figures; raises KeyboardInterrupt if the tasks shall stop."""
        known = math.nan if validation is None else validation
        self.board.figures[self.task, PROGRESS:] = min(progress, 1), train, known, rows_per_second
        self.changed()
        if self.board.stopped and progress < 1:
            raise KeyboardInterrupt

    def notice(self, text: str) -> None:
        """Passes the sentence on."""
        self.tell(text)

    def interrupted(self) -> None:
        """Tells the other tasks to stop, too."""
        self.board.stop()
        self.tell(INTERRUPTED)


class Notices:
    """Sentences of tasks, each shown once however many tasks say it.

    place: The file to which tasks of other processes add theirs, one per line.
    """

    def __init__(self, bar: Reporter, place: Path | None = None) -> None:
        self.bar = bar
        self.place = place
        self.shown: set[str] = set()

    def tell(self, text: str) -> None:
        """Shows a sentence, if it is new."""
        if text not in self.shown:
            self.shown.add(text)
            self.bar.notice(text)

    def collect(self) -> None:
        """Shows the sentences of other processes."""
        if self.place is not None and self.place.exists():
            for text in self.place.read_text(encoding="utf-8").splitlines():
                self.tell(text)


def add_notice(place: Path, text: str) -> None:
    """Adds a sentence to a file of them, if there is room."""
    with suppress(OSError), place.open("a", encoding="utf-8") as file:
        file.write(text.replace("\n", " ") + "\n")


def _mean(values: NDArray[np.float64]) -> float:
    """Returns the mean of the numbers among the values; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
