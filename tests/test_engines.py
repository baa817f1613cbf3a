"""Tasks side by side in processes: the same bits, shared arrays, one bar, interrupts and errors."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import nits
from mixed_table import mixed, small
from nits import NITS, kernels
from nits.engines import local, on_ray, packing, pool, shared
from nits.engines.board import RUNNING, Board, Line, Notices, add_notice
from nits.engines.local import NO_PROCESSES, Local, available
from nits.model.density import Density
from nits.tables import members, sharing
from nits.training.progress import INTERRUPTED, Reporter, Silent
from registry import MODELS


class Training(NamedTuple):
    model: Density
    x: torch.Tensor
    seed: int
    max_steps: int


def trained(task: Training, reporter: Reporter) -> tuple[Density, dict[str, Any]]:
    history = nits.fit(
        task.model,
        task.x,
        recipe=nits.Recipe(patience=10**9),  # long runs wait for an interrupt, however long
        max_steps=task.max_steps,
        seed=task.seed,
        progress=reporter,
    )
    return task.model, history.to_dict()


def trainings(count: int, max_steps: int) -> list[Training]:
    x = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    tasks = []
    with torch.random.fork_rng(devices=[]):
        for seed in range(count):
            torch.manual_seed(seed)
            tasks.append(Training(NITS.mlp(3, hidden=16, blocks=1), x, seed, max_steps))
    return tasks


class Spy(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.updates: list[tuple[float, float, float | None, float]] = []

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        self.updates.append((progress, train, validation, rows_per_second))

    def notice(self, text: str) -> None:
        self.notices.append(text)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """What `Local` tells its bar."""
    found = Spy()
    monkeypatch.setattr("nits.engines.local.Bar", lambda label: found)
    return found


@pytest.fixture(params=[1, 2])
def engine(request: pytest.FixtureRequest) -> Local:
    return Local(request.param)


def test_bits_are_the_same_wherever_a_task_runs() -> None:
    threads = torch.get_num_threads()
    here = Local(1).run(trained, trainings(3, 12))
    apart = Local(2).run(trained, trainings(3, 12))
    assert torch.get_num_threads() == threads
    for one, other in zip(here, apart, strict=True):
        assert one is not None
        assert other is not None
        state = other[0].state_dict()
        assert all(torch.equal(value, state[name]) for name, value in one[0].state_dict().items())
        assert one[1]["validation"] == other[1]["validation"]
    assert here[0] is not None
    assert here[1] is not None
    assert here[0][1]["validation"] != here[1][1]["validation"]


def test_members_of_a_table_are_the_same_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    table, begun = mixed(120), []
    one = small(members=2, max_steps=4).fit(table)

    def engine(workers: int) -> Local:
        begun.append(workers)
        return Local(workers)

    monkeypatch.setattr(members, "Local", engine)
    monkeypatch.setattr(sharing, "available", lambda: 2)
    monkeypatch.setattr(sharing, "WORTH_PROCESSES", 0.0)
    other = small(members=2, max_steps=4).fit(table)
    assert begun == [2]
    assert np.array_equal(one.score_samples(table), other.score_samples(table))
    assert one.held_out_ == other.held_out_


Surroundings = tuple[int, int, torch.dtype, kernels.Policy, int]


def surroundings(task: int, reporter: Reporter) -> Surroundings:
    reporter.notice("the same for all")
    reporter.update(0.5, float(task), None, 10.0)
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    return os.getpid(), threads, dtype, kernels.current(), available()


@pytest.fixture
def doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("doubles")
def test_what_holds_here_holds_there(engine: Local, spy: Spy) -> None:
    with kernels.using(native=False, compiled=False):
        policy = kernels.current()
        results = engine.run(surroundings, range(4), progress=True)
    for result in results:
        assert result is not None
        pid, threads, dtype, found, cpus = result
        assert (pid == os.getpid()) == (engine.workers == 1)
        assert (threads, dtype, found) == (1, torch.float64, policy)
        assert engine.workers == 1 or cpus == 1
    assert spy.notices == ["the same for all"]
    assert spy.updates


@pytest.mark.parametrize(
    ("tasks", "cpus", "expected"),
    [(1, 2, 1), (2, 2, 1), (3, 2, 2), (4, 2, 1), (5, 2, 3), (7, 2, 1), (5, 4, 2), (8, 4, 1)],
)
def test_few_tasks_share_the_cpus_of_a_cluster_that_would_be_idle(
    tasks: int, cpus: int, expected: int
) -> None:
    assert on_ray.shared(tasks, cpus) == expected


def test_processes_are_used_again() -> None:
    first, second = (Local(2).run(surroundings, range(4)) for _ in range(2))
    assert {one[0] for one in first if one} & {one[0] for one in second if one}


def test_one_task_alone_keeps_its_threads() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (found,) = Local(2).run(surroundings, [0])
    finally:
        torch.set_num_threads(threads)
    assert found is not None
    assert found[:2] == (os.getpid(), 2)


def failing(task: int, reporter: Reporter) -> int:
    if task == 1:
        raise FileNotFoundError("no such rows")
    for k in range(200 if task < 2 else 0):
        time.sleep(0.05)
        reporter.update(k / 200, 0.0, 0.0, 0.0)
    return task


def test_an_error_stops_the_others_and_comes_out(engine: Local) -> None:
    threads, begun = torch.get_num_threads(), time.monotonic()
    tasks = [1, 0, 2] if engine.workers == 1 else [0, 1, 2]
    with pytest.raises(FileNotFoundError, match=r"^no such rows$"):
        engine.run(failing, tasks)
    assert time.monotonic() - begun < 8
    assert torch.get_num_threads() == threads


class Announcing(Silent):
    """Makes a file when its task has new figures, and passes them on."""

    def __init__(self, place: Path, reporter: Reporter) -> None:
        self.place = place
        self.notice = reporter.notice  # type: ignore[method-assign]
        self.interrupted = reporter.interrupted  # type: ignore[method-assign]
        self.pass_on = reporter.update

    def update(
        self, progress: float, train: float, validation: float | None, rows_per_second: float
    ) -> None:
        self.place.touch()
        self.pass_on(progress, train, validation, rows_per_second)


def announced(
    task: tuple[Path, Training], reporter: Reporter
) -> tuple[Density, dict[str, Any]] | None:
    place, training = task
    return trained(training, Announcing(place / str(training.seed), reporter))


@contextmanager
def interrupts(place: Path, *files: int) -> Iterator[None]:
    """Sends this process what Ctrl-C sends, when a folder has so many files, and then so many.

    A process that a shell put into the background may ignore it, and is told not to.
    """
    over, before = threading.Event(), signal.signal(signal.SIGINT, signal.default_int_handler)

    def send() -> None:
        for count in files:
            while len(list(place.iterdir())) < count:
                if over.wait(0.02):
                    return
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_what_was_learned(engine: Local, spy: Spy, tmp_path: Path) -> None:
    tasks = [(tmp_path, training) for training in trainings(4, 10**7)]
    with interrupts(tmp_path, engine.workers):
        results = engine.run(announced, tasks, progress=True)
    assert [result is not None for result in results] == [k < engine.workers for k in range(4)]
    for result in results[: engine.workers]:
        assert result is not None
        assert result[1]["stopped"] == "interrupted"
    assert spy.notices == [INTERRUPTED]


PATIENCE = 20.0
"""Seconds after which a task that waits for an interrupt fails."""


def stubborn(place: Path, reporter: Reporter) -> None:
    """Does not stop when it is told to."""
    begun = time.monotonic()
    try:
        while time.monotonic() < begun + PATIENCE:
            (place / "begun").touch()
            time.sleep(0.02)
            reporter.update(0.5, 0.0, 0.0, 0.0)
    except KeyboardInterrupt:
        reporter.interrupted()
        (place / "told").touch()
        time.sleep(1.5)
        return
    raise TimeoutError("no interrupt came")


def test_a_second_ctrl_c_raises(engine: Local, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), interrupts(tmp_path, 1, 2):
        engine.run(stubborn, [tmp_path] * 3)
    assert Local(2).run(surroundings, range(2))[0] is not None


def test_ctrl_c_while_tasks_are_handed_out_leaves_no_process_busy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    submitted = pool.submitted

    def interrupted(*arguments: Any) -> None:
        submitted(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "submitted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Local(2).run(stubborn, [tmp_path] * 2)
    monkeypatch.undo()
    begun = time.monotonic()
    assert Local(2).run(surroundings, range(2))[0] is not None
    assert time.monotonic() - begun < PATIENCE / 2


def test_without_processes_tasks_run_here(monkeypatch: pytest.MonkeyPatch, spy: Spy) -> None:
    def forbidden(workers: int) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(pool, "_pools", {})
    monkeypatch.setattr(pool, "_new", forbidden)
    results = Local(2).run(surroundings, range(3), progress=True)
    assert [result and result[:2] for result in results] == [(os.getpid(), 1)] * 3
    assert spy.notices == [NO_PROCESSES, "the same for all"]


@pytest.mark.slow
def test_tasks_of_a_process_that_dies_run_here(spy: Spy) -> None:
    assert Local(2).run(_dies_elsewhere, [os.getpid()] * 2, progress=True) == [os.getpid()] * 2
    assert spy.notices == [NO_PROCESSES]
    assert Local(2).run(surroundings, range(2))[0] is not None


def _dies_elsewhere(task: int, reporter: Reporter) -> int:
    if task != os.getpid():
        os._exit(1)
    return task


SCRIPT = """
import sys
import tempfile
sys.path.insert(0, {tests!r})
from nits.engines.local import Local
from test_engines import surroundings, trained, trainings
tasks = trainings(4, 10**7)
{first}
print("begun", flush=True)
results = Local(2).run(trained, tasks)
print([None if one is None else one[1]["stopped"] for one in results])
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "Local(2).run(surroundings, range(2))"])
def test_ctrl_c_in_a_terminal(first: str) -> None:
    """It reaches all processes, also those that are just starting; a script needs no guard."""
    code = SCRIPT.format(tests=str(Path(__file__).parent), first=first)
    command, pipe = [sys.executable, "-"], subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as run:
        if run.stdin is None or run.stdout is None or run.stderr is None:
            pytest.fail("no pipes")
        run.stdin.write(code)
        run.stdin.close()
        assert run.stdout.readline() == "begun\n"
        time.sleep(1.5 if first else 1.0)
        os.killpg(run.pid, signal.SIGINT)
        assert run.stderr.read() == ""
        stopped = ["interrupted" if first else None] * 2 + [None] * 2
        assert run.stdout.read() == f"{stopped}\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_workers_end_with_the_process_that_began_them() -> None:
    first = "Local(2).run(surroundings, range(2))"
    code = SCRIPT.format(tests=str(Path(__file__).parent), first=first)
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as run:
        if run.stdout is None:
            pytest.fail("no pipe")
        assert run.stdout.readline() == "begun\n"
        time.sleep(3)
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        run.kill()
    assert len(children) >= 2
    deadline = time.monotonic() + 90  # an idle worker waits for a minute
    while any(_runs(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(_runs(child) for child in children)


def test_no_task_begins_for_a_process_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may have died while the task waited, or before this process took it."""

    def left(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", left)
    settings = pool.Settings.current()
    with pytest.raises(SystemExit):
        local._work(surroundings, tmp_path, 0, settings, os.getppid() + 1)


def _runs(child: str) -> bool:
    """Returns whether a process is alive, and not only waited for."""
    try:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, torch.Tensor) else value


def test_arrays_of_several_tasks_are_written_once_and_mapped(tmp_path: Path) -> None:
    rows = torch.arange(60_000.0).reshape(-1, 3)
    array = np.arange(50_000)
    np.save(tmp_path / "on disk.npy", array)
    mapped = np.load(tmp_path / "on disk.npy", mmap_mode="r")
    column = rows[:, 1]
    tasks = [(rows, array, mapped, torch.arange(0), column, k) for k in range(20)]
    packing.write(tmp_path / "tasks", tasks)
    size = sum(file.stat().st_size for file in tmp_path.glob("tasks*"))
    assert size < 1.1 * (rows.nbytes + 2 * array.nbytes + column.nbytes)
    again = packing.read(tmp_path / "tasks")
    assert all(one[0] is again[0][0] for one in again)
    for one, task in zip(again[7][:5], tasks[7], strict=False):
        assert type(one) is (np.ndarray if isinstance(task, np.ndarray) else torch.Tensor)
        np.testing.assert_array_equal(_array(one), _array(task))
    assert again[7][5] == 7
    again[0][0].zero_()
    again[0][1][:] = 0
    assert torch.equal(packing.read(tmp_path / "tasks")[0][0], rows)


@pytest.mark.parametrize("name", MODELS)
def test_every_density_can_be_sent_to_a_process(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    packing.write(tmp_path / "model", model)
    for again in (packing.read(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        state = again.state_dict()
        for key, value in model.state_dict().items():
            torch.testing.assert_close(state[key], value, rtol=0, atol=0, equal_nan=True)
        needed = [value.requires_grad for value in model.parameters()]
        assert [value.requires_grad for value in again.parameters()] == needed
        context = torch.ones(5, model.context_features) if model.context_features else None
        with torch.no_grad():
            u = torch.full((5, model.columns), 0.3)
            rows = model.from_uniform(u, context)
            assert torch.equal(again.log_prob(rows, context), model.log_prob(rows, context))


def test_a_board_shows_all_tasks_as_one() -> None:
    board, spy = Board.in_memory(4), Spy()
    board.show(spy)
    lines = [Line(board, k, spy.notice) for k in range(4)]
    for k in range(3):
        board.enter(k, RUNNING)
    lines[0].update(0.5, -1.0, None, 100.0)
    lines[1].update(0.7, -3.0, -2.0, 50.0)
    board.show(spy)
    first, second = spy.updates
    assert first[0] == 0
    assert np.isnan(first[1])
    assert first[2:] == (None, 0.0)
    assert second[0] == pytest.approx(0.3)
    assert second[1:] == (-2.0, -2.0, 150.0)
    board.stop()
    lines[0].update(1.0, -1.0, None, 100.0)
    with pytest.raises(KeyboardInterrupt):
        lines[0].update(0.9, -1.0, None, 100.0)


def test_notices_of_other_processes_are_shown_once(tmp_path: Path) -> None:
    spy = Spy()
    notices = Notices(spy, tmp_path / "notices")
    notices.collect()
    for text in ("one", "two\nlines", "one"):
        add_notice(tmp_path / "notices", text)
        notices.collect()
    assert spy.notices == ["one", "two lines"]


def _warning(task: int, _: Reporter) -> int:
    import warnings

    warnings.warn("there is little room.", stacklevel=1)
    return task


def test_warnings_of_other_processes_are_passed_on_once() -> None:
    with pytest.warns(UserWarning, match="there is little room") as found:
        assert Local(2).run(_warning, [0, 1, 2]) == [0, 1, 2]
    assert len(found) == 1


def test_workers_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, but is 0"):
        Local(0)
    assert Local().workers == available() >= 1


def test_the_folder_of_a_killed_run_is_removed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, other = tmp_path / f"{shared.PREFIX}abc", tmp_path / "mine"
    for place in (left, other):
        place.mkdir()
        (place / "tasks").write_bytes(b"rows")
    with shared.folder() as first, shared.folder() as second:
        assert sorted(tmp_path.iterdir()) == sorted([first, second, other])
        assert first.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_that_is_taken_for_left_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    mkdtemp = tempfile.mkdtemp

    def taken(*parts: Any) -> str:
        made.append(mkdtemp(*parts))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", taken)
    with shared.folder("x-", ".part", tmp_path) as place:
        assert place == Path(made[1])
        assert place.name.startswith("x-")
        assert place.name.endswith(".part")
    assert not list(tmp_path.iterdir())
