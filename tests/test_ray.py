"""Work on a Ray cluster of this machine, a head and two nodes: the same bits as without one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from pyarrow import dataset

from mixed_table import mixed
from nits import NITSDensity
from nits.cli.main import main
from nits.engines import Local, Ray
from nits.tables import resume
from nits.training.progress import Reporter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of files and versions
]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yields a cluster whose nodes, of one CPU each, can be killed."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
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


def fitted(engine: Any, steps: int = 40, **options: Any) -> NITSDensity:
    model = NITSDensity(
        max_steps=steps, hidden=16, blocks=1, members=3, random_state=0, engine=engine, **options
    )
    return model.fit(mixed(600))


def same(one: NITSDensity, other: NITSDensity) -> bool:
    states = one.model_.state_dict(), other.model_.state_dict()
    return all(torch.equal(t, states[1][name]) for name, t in states[0].items())


class Sum(NamedTuple):
    numbers: torch.Tensor
    more: int


def added(task: Sum, reporter: Reporter) -> int:
    reporter.notice("added")
    reporter.update(0.5, 1.0, None, 2.0)
    if task.more < 0:
        raise ValueError(f"more must not be negative, but is {task.more}; take 1.")
    return int(task.numbers.sum()) + task.more


def test_results_come_in_the_order_of_the_tasks(cluster: Any) -> None:
    numbers = torch.arange(4)
    assert Ray().run(added, [Sum(numbers, k) for k in range(5)]) == [6, 7, 8, 9, 10]
    assert Ray().parallel() == 2
    assert Ray(workers=1).parallel() == 1


def test_an_error_of_a_task_is_raised(cluster: Any) -> None:
    with pytest.raises(ValueError, match="more must not be negative, but is -1; take 1"):
        Ray().run(added, [Sum(torch.zeros(2), k) for k in (0, -1)])


def test_members_have_the_same_bits_as_on_this_machine(cluster: Any) -> None:
    assert same(fitted(Ray()), fitted(Local(1)))


def test_a_node_that_dies_in_the_middle_costs_nothing_but_time(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "MINUTES", 0.01)
    third = cluster.add_node(num_cpus=1)
    found: list[NITSDensity] = []
    work = threading.Thread(
        target=lambda: found.append(fitted(Ray(workers=3), 600, checkpoint=tmp_path / "kept"))
    )
    work.start()
    deadline = time.monotonic() + 120
    while not list((tmp_path / "kept").glob("member-*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert work.is_alive(), "there must be work left when the node dies"
    cluster.remove_node(third, allow_graceful=False)
    work.join(300)
    assert found, "the fit must end without the node"
    assert same(found[0], fitted(Local(1), 600))


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(cluster: Any, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    mixed(600).to_parquet(table)
    command = [sys.executable, "-m", "nits", "fit", str(table), "-o", str(tmp_path / "m.nits")]
    command += ["--engine", "ray", "--members", "3", "--max-steps", "400", "--quiet"]
    command += ["--checkpoint", str(tmp_path / "kept")]
    first = subprocess.Popen(command)
    deadline = time.monotonic() + 180
    while not list((tmp_path / "kept").glob("member-*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert first.poll() is None, "there must be work left when the driver is killed"
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (tmp_path / "m.nits").exists()
    subprocess.run([*command, "--resume"], check=True, timeout=300)
    import nits

    whole = NITSDensity(max_steps=400, members=3, random_state=0, engine=Local(1))
    assert same(nits.load(tmp_path / "m.nits"), whole.fit(table))


def test_files_are_scored_and_drawn_on_the_cluster_as_here(cluster: Any, tmp_path: Path) -> None:
    rows = mixed(400)
    (tmp_path / "t" / "half=1").mkdir(parents=True)
    (tmp_path / "t" / "half=2").mkdir()
    rows[:200].to_parquet(tmp_path / "t" / "half=1" / "a.parquet", row_group_size=50)
    rows[200:].to_parquet(tmp_path / "t" / "half=2" / "a.parquet", row_group_size=50)
    model = f"{tmp_path}/m.nits"
    NITSDensity(max_steps=5, hidden=16, random_state=0).fit(tmp_path / "t").save(model)
    for name, engine in (("here", []), ("there", ["--engine", "ray"])):
        assert main(["score", model, f"{tmp_path}/t", "-o", f"{tmp_path}/{name}/", *engine]) == 0
        draw = ["sample", model, "-n", "70000", "--seed", "3", "-o", f"{tmp_path}/d{name}/"]
        assert main([*draw, "--partition-by", "half", *engine]) == 0
    for one, other in (("here", "there"), ("dhere", "dthere")):
        read = [dataset.dataset(tmp_path / k, partitioning="hive").to_table() for k in (one, other)]
        assert read[0].equals(read[1])


def test_what_ray_cannot_do_is_said(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = f"{tmp_path}/m.nits"
    NITSDensity(max_steps=2, hidden=16, random_state=0).fit(mixed(50)).save(model)
    assert main(["sample", model, "-n", "5", "-o", "-", "--engine", "ray"]) == 2
    assert "--engine ray needs a folder to write, but -o is -" in capsys.readouterr().err
    assert main(["score", model, "x.csv", "-o", "-", "--engine", "ray"]) == 2
    assert "--engine ray needs a folder of tables" in capsys.readouterr().err
