"""Several processes that train one model: the steps of one process, and what ends them."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nits
from mixed_table import mixed
from nits.training import checkpoint, ranks
from nits.training.loop import Loop
from nits.training.ranks import RankLost, Ranks
from nits.training.recipe import Budget
from nits.training.rows import Rows
from nits.weights.block_linear import dropout

fitting = import_module("nits.training.fit")

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
QUIET = os.environ | {"OMP_NUM_THREADS": "1", "NITS_KERNELS": "plain"}

PROGRAM = """
import signal, sys, torch, nits
from nits.training.interrupts import as_interrupt
from nits.training import checkpoint, ranks

out, steps, place, resume = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "resume"
parts = int(sys.argv[5]) if len(sys.argv) > 5 else 1
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, as_interrupt)  # as the command line does; torchrun sends it
torch.set_num_threads(1)
with ranks.joined() as group:
    x = torch.randn(900, 4, generator=torch.Generator().manual_seed(0)).cumsum(1)
    model = nits.NITS.mlp(
        [nits.heads.Continuous(optional=True)] * 4, hidden=16, blocks=2, dropout=0.2, generator=0
    )
    weight = torch.rand(900, generator=torch.Generator().manual_seed(1)) + 0.5
    history = nits.fit(
        model, x, sample_weight=weight, max_steps=steps, progress=False, seed=3,
        recipe=nits.Recipe(batch_size=100, hide=0.1, patience=10**6, parts=parts),
        checkpoint=place, checkpoint_minutes=0.02, resume=place if resume else None,
    )
    if group.rank == 0:
        torch.save((model.state_dict(), history.to_dict()), out)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    place = tmp_path / "program.py"
    place.write_text(PROGRAM)
    return str(place)


def run(size: int, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a module or program on so many ranks of this machine."""
    launcher = [sys.executable] if size == 1 else [*TORCHRUN, f"--nproc-per-node={size}"]
    return subprocess.run(
        [*launcher, *command], env=QUIET, capture_output=True, text=True, timeout=400, **options
    )


def apart(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    pairs = [(t.double(), other[name].double()) for name, t in one.items() if t.numel()]
    return max(float((a - b).abs().nan_to_num().max()) for a, b in pairs)


def test_parts_of_ranks_cover_a_batch() -> None:
    for size in (1, 2, 3, 7):
        rows = [k for rank in range(size) for k in range(*Ranks(rank, size).part(10).indices(10))]
        assert rows == list(range(10))


def test_dropout_of_a_part_is_that_of_the_batch() -> None:
    x = torch.ones(6, 10)

    def drawn(values: torch.Tensor, part: tuple[int, int] | None) -> torch.Tensor:
        return dropout(values, 0.5, True, torch.Generator().manual_seed(0), part)

    whole = drawn(x, None)
    assert torch.equal(torch.cat([drawn(x[:, :4], (0, 10)), drawn(x[:, 4:], (4, 10))], 1), whole)
    columns = torch.ones(10, 6).t()
    assert torch.equal(drawn(torch.ones(3, 6).t(), (7, 10)), drawn(columns, None)[:, 7:])


def test_roles_of_a_part_are_those_of_the_batch() -> None:
    model = nits.RandomRoles(nits.Roles.mlp([nits.heads.Continuous(optional=True)] * 3, hidden=8))
    x = torch.randn(10, 3)
    model.reseed(5)
    whole = model(x)
    parts = []
    for start, stop in ((0, 4), (4, 10)):
        model.reseed(5)
        model.take_part(start, 10)
        parts.append(model(x[start:stop]))
    model.take_part(0, None)
    torch.testing.assert_close(torch.cat(parts), whole)


def test_a_process_of_its_own_is_alone() -> None:
    group = ranks.current()
    assert (group.alone, group.part(7), group.agreed(5)) == (True, slice(0, 7), 5)
    assert group.summed(1.0, 2.0) == [1.0, 2.0]
    with ranks.apart():
        assert ranks.current().alone
    assert not ranks.is_launched()


def test_what_is_left_of_a_run_without_a_checkpoint_is_said() -> None:
    with pytest.raises(RankLost, match=r"another rank .* has ended \(gone\)"), ranks._noticed():
        raise RuntimeError("gone")
    model = nits.NITS.mlp(2, hidden=4, generator=0)
    run = Loop(model, Rows(torch.randn(20, 2)), None, nits.Recipe(), Budget(None, 5), 0)
    left = "; without a checkpoint nothing is left of it"
    with pytest.raises(RankLost, match=left), fitting._kept(run, None):
        raise RankLost("another rank has ended")


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_several_ranks_take_the_steps_of_one(size: int, program: str, tmp_path: Path) -> None:
    for count in (1, size):
        done = run(
            count, program, f"{tmp_path}/{count}.pt", "40", f"{tmp_path}/{count}.kept", "new"
        )
        assert done.returncode == 0, done.stderr
    one, several = (torch.load(tmp_path / f"{count}.pt") for count in (1, size))
    assert apart(one[0], several[0]) < 1e-5
    for name in ("validation", "train"):
        np.testing.assert_allclose(one[1][name], several[1][name], atol=1e-5)


@pytest.mark.slow
def test_one_process_with_two_parts_has_the_bits_of_two_ranks(program: str, tmp_path: Path) -> None:
    for count in (1, 2):
        own = f"{tmp_path}/{count}.pt", "60", f"{tmp_path}/{count}.kept", "new", "2"
        done = run(count, program, *own)
        assert done.returncode == 0, done.stderr
    one, two = (torch.load(tmp_path / f"{count}.pt") for count in (1, 2))
    assert apart(one[0], two[0]) == 0.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "table"
    place.mkdir()
    mixed(900).drop(columns="seen").to_parquet(place / "a.parquet", row_group_size=60)
    return place


def fit(folder: Path, output: str, steps: int) -> list[str]:
    command = ["-m", "nits", "fit", str(folder), "-o", str(folder.parent / output)]
    return [*command, "--max-steps", str(steps), "--seed", "0"]


@pytest.mark.slow
def test_torchrun_fits_as_one_process_does(folder: Path) -> None:
    for count in (1, 2):
        done = run(count, *fit(folder, f"{count}.nits", 30), "--members", "2")
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("nats per row on held-out rows") == 1
    one, two = (nits.load(folder.parent / f"{count}.nits") for count in (1, 2))
    assert apart(one.model_.state_dict(), two.model_.state_dict()) < 1e-4
    assert two.held_out_ == pytest.approx(one.held_out_, abs=1e-4)


def begun(program: str, tmp_path: Path) -> subprocess.Popen[str]:
    """Starts two ranks, and waits until there is a checkpoint of their training."""
    own = [program, f"{tmp_path}/m.pt", "1000000", f"{tmp_path}/kept", "new"]
    found = subprocess.Popen(
        [*TORCHRUN, "--nproc-per-node=2", *own], env=QUIET, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 300
    while not (tmp_path / "kept").exists() and time.monotonic() < deadline:
        if found.poll() is not None:
            break
        time.sleep(0.1)
    assert found.poll() is None
    return found


def workers(parent: int) -> list[int]:
    """Returns the processes that a process has started, in the order of their ranks."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True
    )
    return sorted(int(line) for line in found.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "size"), [(0, 1), (1, 3)])
def test_a_rank_that_is_killed_ends_all_with_a_checkpoint(
    program: str, tmp_path: Path, lost: int, size: int
) -> None:
    group = begun(program, tmp_path)
    os.kill(workers(group.pid)[lost], signal.SIGKILL)
    said = group.communicate(timeout=300)[1]
    assert group.returncode != 0
    found = re.search(r"another rank .* has ended .*; all (\d+) steps are in .*, from which", said)
    assert found is not None, said
    steps = int(found[1])
    assert checkpoint.read(tmp_path / "kept")[1]["step"] == steps, "no step may be lost"
    more = (f"{tmp_path}/m.pt", str(steps + 20), f"{tmp_path}/kept", "resume")
    done = run(size, program, *more)
    assert done.returncode == 0, done.stderr
    assert torch.load(tmp_path / "m.pt")[1]["step"][-1] == steps + 20


@pytest.mark.slow
def test_ctrl_c_of_one_rank_stops_all_at_the_same_step(program: str, tmp_path: Path) -> None:
    group = begun(program, tmp_path)
    os.kill(workers(group.pid)[1], signal.SIGINT)
    said = group.communicate(timeout=300)[1]
    assert group.returncode == 0, said
    history = torch.load(tmp_path / "m.pt")[1]
    assert history["stopped"] == "interrupted"
    assert checkpoint.read(tmp_path / "kept")[1]["step"] >= history["step"][-1]


@pytest.mark.slow
def test_images_are_fitted_by_one_process(tmp_path: Path) -> None:
    from PIL import Image

    for k in range(4):
        Image.new("L", (4, 4), k).save(tmp_path / f"{k}.png")
    done = run(2, "-m", "nits", "fit", str(tmp_path), "-o", str(tmp_path / "m.nits"))
    assert done.returncode != 0
    assert "models of images must be fitted by one process, but torchrun started 2" in done.stderr
