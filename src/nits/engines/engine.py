"""What every engine does: run tasks that do not depend on each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from nits.training.progress import Reporter

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(ABC):
    """Runs independent tasks, one thread each."""

    @abstractmethod
    def parallel(self) -> int:
        """Returns how many tasks run at a time, each with a CPU of its own."""

    def at_once(self, tasks: int) -> int:
        """Returns how many of so many tasks best run at a time, if they take equally long."""
        return self.parallel()

    @abstractmethod
    def run(
        self,
        function: Callable[[Task, Reporter], Result],
        tasks: Sequence[Task],
        *,
        progress: bool = False,
        label: str = "training",
        at_once: int | None = None,
    ) -> list[Result | None]:
        """Returns what the function makes of each task, in their order.

        After Ctrl-C the reporters of running tasks raise KeyboardInterrupt, no other task begins,
        and None stands for those without a result; a second Ctrl-C raises. An error of a task stops
        the others and is raised.

        function: Called with a task and a reporter. The task may be a copy, so what the function
            learns it must return.
        tasks: Anything that can be pickled. Arrays that several of them hold are not copied.
        progress: Whether to show a bar, which `label` names.
        at_once: Tasks that run at a time; by default as many as there are CPUs.
        """


def checked(workers: int | None) -> int | None:
    """Refuses a number of workers that is none."""
    if workers is not None and workers < 1:
        raise ValueError(
            f"workers must be at least 1, but is {workers!r}; leave it out to use all CPUs."
        )
    return workers
