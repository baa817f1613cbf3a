"""The engine of a cluster: tasks run on the nodes of Ray, which is imported when it is needed.

A task whose node dies is begun anew on another one; if it keeps a checkpoint in a folder that all
nodes see, it goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic

import numpy as np

from nits.engines import pool
from nits.engines.board import DONE, PROGRESS, RUNNING, Board, Notices
from nits.engines.engine import Engine, Result, Task, checked
from nits.training.progress import INTERRUPTED, Bar, Reporter, Silent, Unmarked

POLL_SECONDS = 0.5
"""How often the bar is drawn while nodes work."""

RETRIES = 5
"""How often a task is begun anew because its node has died."""

SHARING = 3
"""Tasks that one CPU has at once, at most."""


class Ray(Engine):
    """Runs independent tasks on a Ray cluster, at most one CPU each; needs the extra `[ray]`.

    A few tasks that cannot be dealt out evenly, such as five to two CPUs, share these.

    workers: CPUs at a time; by default all of the cluster.
    address: The cluster's, such as "ray://head:10001" or "auto". By default that of the session
        that has been begun, else what the environment's RAY_ADDRESS names, else a cluster of this
        machine alone.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self.workers = checked(workers)
        self.address = address

    def __repr__(self) -> str:
        return f"Ray(workers={self.workers!r}, address={self.address!r})"

    def started(self) -> Any:
        """Returns Ray's module, with a session begun."""
        try:
            import ray
        except ModuleNotFoundError:
            raise ImportError(
                "the engine Ray needs the package ray, but it is not installed; "
                "pip install 'nits[ray]'."
            ) from None
        if not ray.is_initialized():
            try:
                ray.init(self.address, log_to_driver=False, configure_logging=False)
            except (ConnectionError, ValueError) as error:
                reason = " ".join(str(error).split())[:120]
                raise ValueError(
                    f"there must be a Ray cluster at {self.address!r}, but none answers ({reason});"
                    " start one, or leave the address out."
                ) from None
        return ray

    def parallel(self) -> int:
        """Returns how many tasks run at a time, each with a CPU of its own."""
        cpus = int(self.started().cluster_resources().get("CPU", 1))
        return max(1, cpus if self.workers is None else min(self.workers, cpus))

    def at_once(self, tasks: int) -> int:
        """Returns how many of so many tasks best run at a time; see `shared`."""
        return shared(tasks, self.parallel()) * self.parallel()

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
            run, cpus = _Run(self.started(), function, tasks, bar), self.parallel()
            return run.results(at_once or cpus, math.ceil((at_once or cpus) / cpus))


def shared(count: int, parallel: int) -> int:
    """Returns how many of so many tasks each CPU has at once.

    One, if all CPUs are then busy to the end. Else all tasks run at once, if they are few: three
    tasks on a node take as long as one after another, but a node with several CPUs, or one machine
    that stands for several nodes, then leaves none of its cores idle.
    """
    found = math.ceil(count / parallel)
    return found if count % parallel and count > parallel and found <= SHARING else 1


class Figures:
    """An actor with the latest figures of each task; see `Board`."""

    def __init__(self, tasks: int) -> None:
        self.board = Board.in_memory(tasks)
        self.notices: list[str] = []

    def update(self, task: int, state: float, figures: Sequence[float]) -> bool:
        """Takes the figures of a task; returns whether it shall stop."""
        self.board.enter(task, state)
        if len(figures):
            self.board.figures[task, PROGRESS:] = figures
        return self.board.stopped

    def notice(self, text: str) -> None:
        """Takes a sentence."""
        self.notices.append(text)

    def stop(self) -> None:
        """Tells all tasks to stop."""
        self.board.stop()

    def seen(self) -> tuple[Any, list[str]]:
        """Returns all figures and sentences."""
        return np.array(self.board.figures), list(self.notices)


class Line(Unmarked):
    """The reporter of a task on a node."""

    def __init__(self, actor: Any, task: int) -> None:
        self.actor, self.task = actor, task

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        """Sends the figures; raises KeyboardInterrupt if the tasks shall stop."""
        known = math.nan if validation is None else validation
        figures = (min(progress, 1), train, known, rows_per_second)
        if self.sent(RUNNING, figures) and progress < 1:
            raise KeyboardInterrupt

    def sent(self, state: float, figures: Sequence[float] = ()) -> bool:
        """Sends the state; returns whether the tasks shall stop."""
        import ray

        return bool(ray.get(self.actor.update.remote(self.task, state, figures)))

    def notice(self, text: str) -> None:
        """Passes the sentence on."""
        self.actor.notice.remote(text)

    def interrupted(self) -> None:
        """Is told by the driver only, to which Ctrl-C comes."""


def _work(
    function: Callable[[Any, Reporter], Any],
    every: Sequence[Any],
    k: int,
    actor: Any,
    settings: pool.Settings,
) -> Any:
    """Runs task k on a node; returns None if all shall stop."""
    line = Line(actor, k)
    if line.sent(RUNNING):
        return None
    try:
        with settings.held():
            return function(every[k], line)
    except KeyboardInterrupt:
        return None
    finally:
        line.sent(DONE)


class _Run(Generic[Task, Result]):
    """Tasks of a run, and what nodes say of them."""

    def __init__(
        self,
        ray: Any,
        function: Callable[[Task, Reporter], Result],
        tasks: Sequence[Task],
        bar: Reporter,
    ) -> None:
        self.ray, self.function, self.tasks, self.bar = ray, function, tasks, bar
        self.notices = Notices(bar)
        self.stopped = False

    def results(self, parallel: int, each: int) -> list[Result | None]:
        """Runs the tasks, so many at a time, and returns their results.

        each: How many tasks a CPU has at once.
        """
        # On the driver's own node: if that dies, nobody wants the results any more.
        here = self.ray.get_runtime_context().get_node_id()
        near = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        kind = self.ray.remote(Figures).options(num_cpus=0, scheduling_strategy=near)
        self.actor = kind.remote(len(self.tasks))
        work = self.ray.remote(_work).options(num_cpus=1 / each, max_retries=RETRIES)
        packed, settings = self.ray.put(list(self.tasks)), pool.Settings.current()
        waiting = list(range(len(self.tasks)))
        found: dict[Any, int] = {}
        results: list[Result | None] = [None] * len(self.tasks)
        try:
            while waiting or found:
                while waiting and len(found) < parallel and not self.stopped:
                    k = waiting.pop(0)
                    found[work.remote(self.function, packed, k, self.actor, settings)] = k
                if self.stopped:
                    waiting.clear()
                for done in self._ended(list(found)):
                    results[found.pop(done)] = self._result(done)
        finally:
            for left in found:
                self.ray.cancel(left, force=True)
            self.ray.kill(self.actor)
        return results

    def _ended(self, running: list[Any]) -> list[Any]:
        """Returns tasks that have ended; the first interrupt ends all, the second raises."""
        try:
            done, _ = self.ray.wait(running, timeout=POLL_SECONDS) if running else ([], [])
            figures, notices = self.ray.get(self.actor.seen.remote())
            for text in notices:
                self.notices.tell(text)
            Board(figures).show(self.bar)
            return list(done)
        except KeyboardInterrupt:
            if self.stopped:
                raise
            self._stop()
            self.notices.tell(INTERRUPTED)
            return []

    def _stop(self) -> None:
        self.stopped = True
        self.ray.get(self.actor.stop.remote())

    def _result(self, done: Any) -> Any:
        """Returns the result of a task, or raises its error."""
        try:
            return self.ray.get(done)
        except self.ray.exceptions.RayTaskError as error:
            self._stop()
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            self._stop()
            reason = " ".join(str(error).split())[:200]
            raise RuntimeError(
                f"a task must end, but its nodes died {RETRIES} times ({reason}); "
                "add nodes, and go on from a checkpoint if there is one."
            ) from None
