"""The engine of this machine: tasks run in processes, one thread each, on all cores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, Generic

import torch

from nits.engines import packing, pool, shared
from nits.engines.board import DONE, RUNNING, WAITING, Board, Line, Notices, add_notice
from nits.engines.engine import Engine, Result, Task, checked
from nits.training import ranks
from nits.training.progress import INTERRUPTED, Bar, Reporter, Silent

POLL_SECONDS = 0.5
"""How often the bar is drawn while other processes work."""

TASKS, BOARD, NOTICES, WARNINGS = "tasks", "board", "notices", "warnings"
"""The files that the processes of a run share."""

NO_PROCESSES = "other processes cannot be had, so this one does the work, piece after piece."


class Local(Engine):
    """Runs independent tasks on this machine's cores, one thread each.

    Results have the same bits wherever a task runs, here or in another process.

    workers: Processes at a time; by default one for each CPU that this process may use. With 1,
        tasks run in this process, one after another.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = checked(workers) or available()

    def __repr__(self) -> str:
        return f"Local(workers={self.workers})"

    def parallel(self) -> int:
        """Returns how many tasks run at a time."""
        return self.workers

    def run(
        self,
        function: Callable[[Task, Reporter], Result],
        tasks: Sequence[Task],
        *,
        progress: bool = False,
        label: str = "training",
        at_once: int | None = None,
    ) -> list[Result | None]:
        """Returns what the function makes of each task, in their order; see `Engine.run`."""
        with Bar(label) if progress else Silent() as bar:
            run = _Run(function, tasks, bar)
            workers = min(at_once or self.workers, len(tasks))
            if workers > 1:
                run.side_by_side(workers)
            else:
                run.here(Board.in_memory(len(tasks)), Notices(bar))
        return run.results


def available() -> int:
    """Returns the number of CPUs that this process may use.

    One, if it is one of a pool itself, or one of several that train a model together.
    """
    if parent_process() is not None or ranks.current().size > 1:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Run(Generic[Task, Result]):
    """Tasks and their results."""

    def __init__(
        self, function: Callable[[Task, Reporter], Result], tasks: Sequence[Task], bar: Reporter
    ) -> None:
        self.function = function
        self.tasks = tasks
        self.bar = bar
        self.results: list[Result | None] = [None] * len(tasks)

    def here(self, board: Board, notices: Notices) -> None:
        """Runs the tasks that are not done yet in this process, one after another."""
        with _threads(1 if len(self.tasks) > 1 else torch.get_num_threads()):
            for k in range(len(self.tasks)):
                if not (board.stopped or board.is_done(k)):
                    self._one_here(k, board, notices)

    def _one_here(self, k: int, board: Board, notices: Notices) -> None:
        line = Line(board, k, notices.tell, partial(board.show, self.bar))
        board.enter(k, RUNNING)
        try:
            self.results[k] = self.function(self.tasks[k], line)
        except KeyboardInterrupt:
            if board.stopped:  # by an earlier one
                raise
            line.interrupted()
        board.enter(k, DONE)

    def side_by_side(self, workers: int) -> None:
        """Runs the tasks in processes, and here those whose process cannot start or dies."""
        with ExitStack() as stack:
            try:
                place = stack.enter_context(shared.folder())
                board = Board.created(place / BOARD, len(self.tasks))
                stack.callback(board.stop)  # whatever ends this, no process works on
                futures = self._begun(place, workers)
            except pool.FAILURES:
                self._instead(Board.in_memory(len(self.tasks)), Notices(self.bar))
                return
            notices = Notices(self.bar, place / NOTICES)
            with pool.restarts_unnoticed():
                self._watch(futures, board, notices)
            _warn_of(place / WARNINGS)
            if not self._collected(futures, board):
                pool.forget(workers)
                self._instead(board, notices)

    def _begun(self, place: Path, workers: int) -> list[Future[Any]]:
        """Puts the tasks into a file, and has processes begin with them."""
        packing.write(place / TASKS, list(self.tasks))
        settings = pool.Settings.current()
        own = os.getpid()
        arguments = [(self.function, place, k, settings, own) for k in range(len(self.tasks))]
        return pool.submitted(_work, arguments, workers)

    def _watch(self, futures: list[Future[Any]], board: Board, notices: Notices) -> None:
        """Shows progress until all tasks have ended; the first interrupt or error ends them."""
        waiting = set(futures)
        while waiting:
            try:
                done, waiting = wait(waiting, POLL_SECONDS, FIRST_EXCEPTION)
                if any(_own_error(future) for future in done):
                    board.stop()
                notices.collect()
                board.show(self.bar)
            except KeyboardInterrupt:
                if board.stopped:
                    raise
                board.stop()
                notices.tell(INTERRUPTED)

    def _collected(self, futures: list[Future[Any]], board: Board) -> bool:
        """Takes the results, or raises the error of a task; returns whether no process has died."""
        for error in map(_own_error, futures):
            if error is not None:
                raise error
        died = [k for k, future in enumerate(futures) if future.exception() is not None]
        for k, future in enumerate(futures):
            if k in died:
                board.enter(k, WAITING)
            else:
                self.results[k] = future.result()
        return not died

    def _instead(self, board: Board, notices: Notices) -> None:
        notices.tell(NO_PROCESSES)
        self.here(board, notices)


def _own_error(future: Future[Any]) -> BaseException | None:
    """Returns the error of a task, if it was not that its process died."""
    error = future.exception()
    return None if isinstance(error, BrokenProcessPool) else error


def _work(
    function: Callable[[Task, Reporter], Result],
    place: Path,
    k: int,
    settings: pool.Settings,
    parent: int,
) -> Result | None:
    """Runs task k in a process of the pool; returns None if all shall stop.

    parent: The process that wants the result, which may be gone before this one begins.
    """
    _end_with(parent)
    board = Board.opened(place / BOARD)
    if board.stopped:
        return None
    board.enter(k, RUNNING)
    line = Line(board, k, partial(add_notice, place / NOTICES), partial(_end_with, parent))
    try:
        with settings.held(), _passed_on(place / WARNINGS):
            return function(packing.read(place / TASKS)[k], line)
    except KeyboardInterrupt:
        return None
    finally:
        board.enter(k, DONE)


@contextmanager
def _passed_on(place: Path) -> Iterator[None]:
    """Has a file take the warnings of a block of code, for the process that began this one."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: add_notice(place, str(message))
        yield


def _warn_of(place: Path) -> None:
    """Warns of what tasks in other processes have warned of, once each."""
    if place.exists():
        for text in dict.fromkeys(place.read_text(encoding="utf-8").splitlines()):
            warnings.warn(text, stacklevel=2)


def _end_with(parent: int) -> None:
    """Ends this process if the one that began it is gone: nobody wants its work any more."""
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Has torch use so many threads in a block of code."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
