"""One model on several workers of a Ray cluster at once: the steps of one process."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from mixed_table import mixed
from nits import NITSDensity
from nits.engines import Local, RayTrain
from nits.training import ranks
from nits.training.interrupts import Interrupts
from nits.training.progress import Reporter

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yields a cluster of a head and two nodes of one CPU each."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    pytest.importorskip("ray.train", exc_type=ImportError)
    import ray

    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{before}"
    found = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        found.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = found.address
    yield found
    ray.shutdown()
    found.shutdown()
    del os.environ["RAY_ADDRESS"]
    os.environ["PYTHONPATH"] = before


class Counted(NamedTuple):
    """A task that notes in a folder how often it was begun.

    kind: "dies" if the second rank kills itself the first time, "fails" if the task is wrong.
    """

    folder: Path
    name: str
    kind: str = ""


def counted(task: Counted, reporter: Reporter) -> tuple[str, float]:
    """Returns the name, and the sum of the ranks' numbers."""
    group = ranks.current()
    mark = task.folder / f"{task.name}-{group.rank}-{len(list(task.folder.iterdir()))}"
    mark.touch()
    if task.kind == "dies" and group.rank == 1 and not (task.folder / "died").exists():
        (task.folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if task.kind == "fails":
        raise ValueError("the task must be right, but is not.")
    return task.name, group.summed(float(group.rank + 1))[0]


def test_an_interrupt_of_a_reporter_waits_for_the_next_check() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    interrupts = Interrupts()
    with interrupts.noted():
        stop()
    assert interrupts.came
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()


def test_what_is_no_number_of_workers_or_failures_is_refused() -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, but is 0"):
        RayTrain(0)
    with pytest.raises(ValueError, match="failures must be at least 0, but is -1"):
        RayTrain(2, failures=-1)
    assert RayTrain(2).parallel() == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
class TestOnACluster:
    def test_a_worker_that_dies_has_all_begin_anew_but_for_what_is_done(
        self, cluster: Any, tmp_path: Path
    ) -> None:
        marks = tmp_path / "marks"
        marks.mkdir()
        tasks = [Counted(marks, "first"), Counted(marks, "second", "dies")]
        found = RayTrain(2, failures=2, storage=tmp_path / "ray").run(counted, tasks)
        assert found == [("first", 3.0), ("second", 3.0)]
        begun = [path.name.split("-")[0] for path in marks.iterdir() if "-0-" in path.name]
        assert sorted(begun) == ["first", "second", "second"]

    def test_an_error_of_a_task_is_raised_and_not_tried_again(
        self, cluster: Any, tmp_path: Path
    ) -> None:
        marks = tmp_path / "marks"
        marks.mkdir()
        with pytest.raises(ValueError, match="the task must be right"):
            RayTrain(2, failures=2, storage=tmp_path / "ray").run(
                counted, [Counted(marks, "wrong", "fails")]
            )
        assert len([path for path in marks.iterdir() if "-0-" in path.name]) == 1

    def test_a_model_has_the_steps_of_one_process(self, cluster: Any, tmp_path: Path) -> None:
        def fitted(engine: Any) -> NITSDensity:
            options: dict[str, Any] = {"hidden": 16, "blocks": 1, "members": 1, "random_state": 0}
            model = NITSDensity(max_steps=40, engine=engine, outliers=False, **options)
            return model.fit(mixed(600))

        there = fitted(RayTrain(2, storage=tmp_path / "ray"))
        here = fitted(Local(1))
        states = there.model_.state_dict(), here.model_.state_dict()
        for name, weights in states[0].items():
            assert torch.allclose(weights, states[1][name], rtol=0, atol=1e-5), name
        rows = mixed(50)
        apart = there.score_samples(rows) - here.score_samples(rows)
        assert np.abs(apart).max() < 1e-3

    def test_a_cluster_that_is_too_small_is_told(self, cluster: Any) -> None:
        with pytest.raises(ValueError, match="at most the CPUs of the cluster, 2, but is 9"):
            RayTrain(9).run(counted, [])
