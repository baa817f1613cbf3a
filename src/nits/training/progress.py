"""Progress on stderr: the bar of a training run, and a counter of rows."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Protocol, Self

INTERRUPTED = "training was interrupted; the model has the best weights so far."


class Reporter(Protocol):
    """Something that is told how training goes."""

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Takes the latest figures."""

    def notice(self, text: str) -> None:
        """Takes a sentence for the user."""

    def interrupted(self) -> None:
        """Is told that the user has interrupted training."""

    def __enter__(self) -> Reporter: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Unmarked:
    """Its block of code begins and ends without a trace."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Drawn:
    """Shows its bar, one of rich, while its block of code runs."""

    bar: Any

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


class Silent(Unmarked):
    """Says nothing."""

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Ignores the figures."""

    def notice(self, text: str) -> None:
        """Ignores the sentence."""

    def interrupted(self) -> None:
        """Ignores that."""


class Bar(Drawn):
    """A rich progress bar with train and validation nats, rows per second and time left.

    label: What it calls the work.
    """

    def __init__(self, label: str = "training") -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self.bar = Progress(
            TextColumn(label),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("train {task.fields[train]} · validation {task.fields[validation]} nats"),
            TextColumn("{task.fields[rate]} rows/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task("", total=1.0, train="—", validation="—", rate="—")

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Redraws the bar."""
        self.bar.update(
            self.task,
            completed=min(progress, 1.0),
            train=_nats(train),
            validation=_nats(validation),
            rate=f"{rows_per_second:,.0f}",
        )

    def notice(self, text: str) -> None:
        """Prints the sentence above the bar."""
        self.bar.console.print(text, highlight=False, markup=False)

    def interrupted(self) -> None:
        """Says so above the bar."""
        self.notice(INTERRUPTED)


def _nats(value: float | None) -> str:
    return "—" if value is None or math.isnan(value) else f"{value:.3f}"


class Counter(Drawn):
    """A count of rows that grows, with rows per second, and a bar if the total is known."""

    def __init__(self, unit: str, *, quiet: bool, total: int | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        text = f"{{task.completed:,.0f}} {unit} · {{task.fields[rate]}} {unit}/s"
        columns = (BarColumn(bar_width=24), TextColumn(text)) if total else (TextColumn(text),)
        console = Console(stderr=True)
        hidden = quiet or not (console.is_terminal or console.is_jupyter)
        self.bar = Progress(*columns, console=console, disable=hidden, transient=True)
        self.task = self.bar.add_task("", total=total, rate="—")

    def add(self, count: float) -> None:
        """Counts some more."""
        self.bar.advance(self.task, count)
        speed = self.bar.tasks[0].speed
        self.bar.update(self.task, rate="—" if speed is None else f"{speed:,.0f}")
