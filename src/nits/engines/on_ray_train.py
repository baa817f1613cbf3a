"""The engine of one large model on a cluster: Ray Train's workers take each step together.

Each worker is a rank of `nits.training.ranks`, as torchrun starts them: it has a part of every
batch, and reads the row groups of that part itself, in the order that follows from the seed. If a
worker dies all begin anew, up to a number of times, and go on from the checkpoint if there is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Generic

from nits.engines import pool
from nits.engines.board import DONE, RUNNING, Board, Notices
from nits.engines.engine import Result, Task
from nits.engines.on_ray import POLL_SECONDS, Figures, Line, Ray
from nits.training import ranks
from nits.training.progress import INTERRUPTED, Bar, Reporter, Silent


class RayTrain(Ray):
    """Trains each network on several workers of a Ray cluster at once; needs the extra `[ray]`.

    Networks learn one after another. The steps are those of one process but for rounding.

    workers: Processes of one CPU each that share the rows of every step.
    failures: How often all workers begin anew because one of them has died.
    storage: A folder or address that all nodes see, for Ray's notes of the run; by default
        ~/ray_results, which does where there is one node.
    address: The cluster's; see `nits.engines.Ray`.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        failures: int = 3,
        storage: str | Path | None = None,
        address: str | None = None,
    ) -> None:
        super().__init__(workers, address)
        self.ranks = workers
        if failures < 0:
            raise ValueError(f"failures must be at least 0, but is {failures!r}.")
        self.failures = failures
        self.storage = storage

    def __repr__(self) -> str:
        return f"RayTrain(workers={self.ranks!r}, failures={self.failures!r})"

    def parallel(self) -> int:
        """Returns how many networks learn at a time: one, on all workers."""
        return 1

    def run(
        self,
        function: Callable[[Task, Reporter], Result],
        tasks: Sequence[Task],
        *,
        progress: bool = False,
        label: str = "training",
        at_once: int | None = None,
    ) -> list[Result | None]:
        """Returns what the function makes of each task on all workers; see `Engine.run`."""
        with Bar(label) if progress else Silent() as bar:
            return _Run(self, function, tasks, bar).results()

    def trainer(self, config: dict[str, Any]) -> Any:
        """Returns Ray's trainer, which calls `_worker` with the configuration on each worker."""
        ray = self.started()
        try:
            from ray import train
            from ray.train.torch import TorchConfig, TorchTrainer
        except ImportError:
            raise ImportError(
                "the engine RayTrain needs Ray Train, but not all of it is installed; "
                "pip install 'nits[ray]'."
            ) from None
        cpus = int(ray.cluster_resources().get("CPU", 1))
        if cpus < self.ranks:
            raise ValueError(
                f"workers must be at most the CPUs of the cluster, {cpus}, but is {self.ranks}; "
                "add nodes."
            )
        seconds = int(ranks.WAITED_FOR.total_seconds())
        return TorchTrainer(
            _worker,
            train_loop_config=config,
            torch_config=TorchConfig(backend="gloo", timeout_s=seconds),
            scaling_config=train.ScalingConfig(
                num_workers=self.ranks, resources_per_worker={"CPU": 1}
            ),
            run_config=train.RunConfig(
                storage_path=None if self.storage is None else str(self.storage),
                failure_config=train.FailureConfig(max_failures=self.failures),
            ),
        )


class _Kept(Figures):
    """An actor with the figures of tasks, their results, and the error that ended one."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.results: dict[int, Any] = {}
        self.error: Exception | None = None

    def keep(self, task: int, result: Any) -> None:
        """Takes the result of a task."""
        self.results[task] = result

    def fail(self, error: Exception) -> None:
        """Takes an error that would come again."""
        self.error = error

    def done(self) -> tuple[set[int], bool]:
        """Returns the tasks that have results, and whether there was an error."""
        return set(self.results), self.error is not None

    def ended(self) -> tuple[dict[int, Any], Exception | None]:
        """Returns all results, and the error."""
        return self.results, self.error


def _worker(config: Mapping[str, Any]) -> None:
    """Runs all tasks that have no result yet, as one of the ranks."""
    import ray

    actor, group = config["actor"], ranks.current()
    with suppress(OSError):  # a node may not have the driver's folder
        os.chdir(config["folder"])
    function, every = ray.get(config["packed"][0])
    done, failed = ray.get(actor.done.remote())
    for k, task in enumerate(every):
        if failed or k in done:
            continue
        line = Line(actor, k)
        if group.agreed(int(group.rank == 0 and line.sent(RUNNING))):
            return
        try:
            with config["settings"].held():
                result = function(task, line if group.rank == 0 else Silent())
        except ranks.RankLost:
            raise
        except Exception as error:
            ray.get(actor.fail.remote(error))
            raise
        if group.rank == 0:
            ray.get(actor.keep.remote(k, result))
            line.sent(DONE)
        group.together()  # if a rank dies now the result is there


class _Run(Generic[Task, Result]):
    """Tasks of a run, and what the workers say of them."""

    def __init__(
        self,
        engine: RayTrain,
        function: Callable[[Task, Reporter], Result],
        tasks: Sequence[Task],
        bar: Reporter,
    ) -> None:
        self.engine, self.tasks, self.bar = engine, tasks, bar
        self.ray = engine.started()
        self.notices = Notices(bar)
        self.stopped = False
        self.failure: Exception | None = None
        here = self.ray.get_runtime_context().get_node_id()
        near = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        kind = self.ray.remote(_Kept).options(num_cpus=0, scheduling_strategy=near)
        self.actor = kind.remote(len(tasks))
        self.config = {
            "packed": [self.ray.put((function, list(tasks)))],
            "actor": self.actor,
            "settings": pool.Settings.current(),
            "folder": str(Path.cwd()),
        }

    def results(self) -> list[Result | None]:
        """Runs the tasks, one after another, and returns their results."""
        try:
            trainer = self.engine.trainer(self.config)
            # In a thread: there Ray leaves Ctrl-C to us.
            thread = Thread(target=self._fit, args=(trainer,), daemon=True)
            thread.start()
            while thread.is_alive():
                self._watch(thread)
            found, error = self.ray.get(self.actor.ended.remote())
        finally:
            self.ray.kill(self.actor)
        if error is not None:
            raise error
        if self.failure is not None:
            raise RuntimeError(self._words(self.failure)) from None
        return [found.get(k) for k in range(len(self.tasks))]

    def _fit(self, trainer: Any) -> None:
        try:
            trainer.fit()
        except Exception as error:
            self.failure = error

    def _watch(self, thread: Thread) -> None:
        """Shows figures; the first interrupt ends the training, the second raises."""
        try:
            thread.join(POLL_SECONDS)
            figures, notices = self.ray.get(self.actor.seen.remote())
            for text in notices:
                self.notices.tell(text)
            Board(figures).show(self.bar)
        except KeyboardInterrupt:
            if self.stopped:
                raise
            self.stopped = True
            self.ray.get(self.actor.stop.remote())
            self.notices.tell(INTERRUPTED)

    def _words(self, error: Exception) -> str:
        reason = " ".join(str(error).split())[:200]
        return (
            f"the workers must end, but have failed {self.engine.failures + 1} times ({reason}); "
            "add nodes, and go on from a checkpoint if there is one."
        )
