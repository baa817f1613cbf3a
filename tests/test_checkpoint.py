"""Checkpoints: a run resumes bit for bit, and takes up no other run's."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import save_file

import nits
from two_columns import QUICK, rows, small, weights


def test_resume_continues_bit_for_bit(tmp_path: Path) -> None:
    whole, half = small(dropout=0.1), small(dropout=0.1)
    place = tmp_path / "run.safetensors"
    expected = nits.fit(whole, rows(), max_steps=40, recipe=QUICK, progress=False)
    nits.fit(
        half,
        rows(),
        max_steps=17,
        recipe=Stopped(QUICK, 40).recipe,
        progress=False,
        checkpoint=place,
    )
    half = small(dropout=0.1)
    history = nits.fit(half, rows(), max_steps=40, recipe=QUICK, progress=False, resume=place)
    assert torch.equal(weights(whole), weights(half))
    assert history.validation[-1] == expected.validation[-1]


class Stopped:
    """A recipe that trains as if the budget were longer, so that it can be stopped half-way."""

    def __init__(self, recipe: nits.Recipe, steps: int) -> None:
        outer = cast(nits.Cosine, recipe.schedule)

        class Longer(nits.Cosine):
            def factor(self, step: int, progress: float, validation: list[float]) -> float:
                return outer.factor(step, step / steps, validation)

            def __repr__(self) -> str:
                return repr(outer)

        self.recipe = nits.Recipe(recipe.batch_size, recipe.learning_rate, schedule=Longer())


def test_ctrl_c_writes_a_checkpoint_and_keeps_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training.loop import Loop

    advance = Loop.advance

    def interrupted(self: Loop, progress: float) -> None:
        advance(self, progress)
        if self.step == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "advance", interrupted)
    place = tmp_path / "run.safetensors"
    history = nits.fit(
        small(), rows(), max_steps=40, recipe=QUICK, progress=False, checkpoint=place
    )
    assert history.stopped == "interrupted"
    monkeypatch.undo()
    resumed, whole = small(), small()
    nits.fit(resumed, rows(), max_steps=40, recipe=QUICK, progress=False, resume=place)
    nits.fit(whole, rows(), max_steps=40, recipe=QUICK, progress=False)
    assert torch.equal(weights(resumed), weights(whole))


SCRIPT = """
import sys
import time
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[3])
from two_columns import QUICK, rows, small, weights
import nits
from nits.training.loop import Loop

advance, slowly = Loop.advance, float(sys.argv[4])

def paced(self, progress):
    time.sleep(slowly)
    advance(self, progress)

Loop.advance = paced
place = Path(sys.argv[1])
model = small(dropout=0.1)
nits.fit(model, rows(), max_steps=600, recipe=QUICK, progress=False, checkpoint=place,
         checkpoint_minutes=0.0002, resume=place if place.exists() else None)
torch.save(weights(model), sys.argv[2])
"""


@pytest.mark.slow
def test_kill_9_at_three_moments_then_resume(tmp_path: Path) -> None:
    place, out = tmp_path / "run.safetensors", tmp_path / "weights.pt"
    command = [sys.executable, "-c", SCRIPT, str(place), str(out), str(Path(__file__).parent)]
    chance = random.Random(0)
    for _ in range(3):  # paced: 600 steps of a run that shall be killed last 6 seconds at least
        process = subprocess.Popen([*command, "0.01"])
        before = place.stat().st_mtime_ns if place.exists() else 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (
            place.exists() and place.stat().st_mtime_ns > before
        ):
            time.sleep(0.01)
        time.sleep(chance.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not out.exists(), "the run ended before it could be killed"
    subprocess.run([*command, "0"], check=True)
    whole = small(dropout=0.1)
    nits.fit(whole, rows(), max_steps=600, recipe=QUICK, progress=False)
    assert torch.equal(torch.load(out, weights_only=True), weights(whole))


def test_a_budget_in_minutes_resumes_with_the_minutes_left(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    options: dict[str, Any] = {"recipe": QUICK, "progress": False}
    first = nits.fit(small(), rows(), max_minutes=0.04, checkpoint=place, **options)
    history = nits.fit(small(), rows(), max_minutes=0.08, resume=place, **options)
    assert 4.8 <= history.seconds[-1] < 12
    # The seconds go on from where they were: those used before count.
    assert history.seconds[: len(first.seconds)] == first.seconds
    assert history.seconds == sorted(history.seconds)
    assert len(history.seconds) > len(first.seconds)


def test_resume_refuses_another_run(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, checkpoint=place)
    with pytest.raises(
        ValueError, match="the checkpoint was made with seed=0, but this run has 1; resume with the"
    ):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place, seed=1)
    other = replace(QUICK, clip=1.0)
    with pytest.raises(ValueError, match=r"made with recipe=.*clip=5\.0.*this run has .*clip=1\.0"):
        nits.fit(small(), rows(), max_steps=3, recipe=other, progress=False, resume=place)
    place.write_bytes(place.read_bytes()[:200])
    with pytest.raises(ValueError, match="must be a whole safetensors file, but is not"):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place)


def checkpointed(tmp_path: Path, **options: Any) -> Path:
    place = tmp_path / "run.safetensors"
    nits.fit(
        small(), rows(), max_steps=3, recipe=QUICK, progress=False, checkpoint=place, **options
    )
    return place


def resumed(place: Path, data: torch.Tensor | None = None, **options: Any) -> nits.History:
    data = rows() if data is None else data
    return nits.fit(
        small(), data, max_steps=5, recipe=QUICK, progress=False, resume=place, **options
    )


def test_resume_refuses_other_rows_of_the_same_number(tmp_path: Path) -> None:
    place = checkpointed(tmp_path)
    with pytest.raises(ValueError, match="made from other training rows, but this run has as many"):
        resumed(place, rows().flip(0))
    place = checkpointed(tmp_path, validation=rows()[:50])
    with pytest.raises(ValueError, match="made from other validation rows, but this run has"):
        resumed(place, validation=rows()[50:100])
    resumed(place, validation=rows()[:50].numpy())  # the same numbers


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
def test_ctrl_c_inside_a_step_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training.loop import Loop

    average = Loop._average

    def interrupted(self: Loop) -> None:
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        average(self)

    monkeypatch.setattr(Loop, "_average", interrupted)
    place = tmp_path / "run.safetensors"
    history = nits.fit(
        small(), rows(), max_steps=20, recipe=QUICK, progress=False, checkpoint=place
    )
    assert history.stopped == "interrupted"
    monkeypatch.undo()
    half, whole = small(), small()
    nits.fit(half, rows(), max_steps=20, recipe=QUICK, progress=False, resume=place)
    nits.fit(whole, rows(), max_steps=20, recipe=QUICK, progress=False)
    assert torch.equal(weights(half), weights(whole))


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
def test_a_second_ctrl_c_does_not_wait_and_spoils_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training.loop import Loop

    def interrupted(self: Loop) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Loop, "_average", interrupted)
    place = tmp_path / "run.safetensors"
    history = nits.fit(
        small(), rows(), max_steps=20, recipe=QUICK, progress=False, checkpoint=place
    )
    assert history.stopped == "interrupted"
    assert not place.exists()  # the step was half taken
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_that_had_stopped_for_lack_of_progress_stays_so(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    recipe = replace(QUICK, patience=1, learning_rate=1.0, schedule=nits.Constant(warmup=1))
    options: dict[str, Any] = {"max_steps": 300, "recipe": recipe, "progress": False}
    model = small()
    first = nits.fit(model, rows(), checkpoint=place, **options)
    assert first.stopped == "patience"
    again = small()
    second = nits.fit(again, rows(), resume=place, **options)
    assert second.step == first.step
    assert second.stopped == "patience"
    assert torch.equal(weights(again), weights(model))


def rewritten(place: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Changes a checkpoint, with a checksum that fits."""
    from nits.training import checkpoint as files

    states, record = files.read(place)
    change(states, record)
    files.write(place, states, record)


def floats(state: dict[str, Any]) -> list[torch.Tensor]:
    return [tensor for tensor in state.values() if tensor.is_floating_point()]


MALFORMED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "step": lambda states, record: record.update(step=-1),
    "bad": lambda states, record: record.update(bad=None),
    "recent": lambda states, record: record.update(recent=[[]]),
    "unknown": lambda states, record: record["history"].update(unknown=1),
    "kernels": lambda states, record: record["history"].update(kernels=[[]]),
    "train": lambda states, record: record["history"].update(train={}),
    "not finite": lambda states, record: floats(states["best"])[-1].fill_(torch.nan),
    "not those of this model": lambda states, record: states["average"].popitem(),
    "another optimizer": lambda states, record: states["optimizer"].popitem(),
    "has shape": lambda states, record: states["optimizer"].update({"0.exp_avg": torch.ones(1)}),
    "no weights 'x'": lambda states, record: states["optimizer"].update({"x.z": torch.ones(1)}),
}


@pytest.mark.parametrize("word", MALFORMED)
def test_a_malformed_checkpoint_is_refused_in_one_sentence(tmp_path: Path, word: str) -> None:
    place = checkpointed(tmp_path)
    rewritten(place, MALFORMED[word])
    with pytest.raises(ValueError, match=rf"does not hold a run that can go on \(.*{word}"):
        resumed(place)


def test_a_changed_bit_is_noticed(tmp_path: Path) -> None:
    place = checkpointed(tmp_path)
    data = bytearray(place.read_bytes())
    data[-5] ^= 1
    place.write_bytes(data)
    with pytest.raises(ValueError, match="is damaged: its checksum does not match"):
        resumed(place)


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
def test_checkpoint_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training import checkpoint as files

    place = tmp_path / "run.safetensors"
    files.write(place, {"model": {"a": torch.ones(3)}}, {"step": 1})
    kept = place.read_bytes()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(place, {"model": {"a": torch.zeros(3)}}, {"step": 2})
    assert place.read_bytes() == kept
    assert [p.name for p in tmp_path.iterdir()] == [place.name]


def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk becomes full during training: what was learned is returned all the same."""
    place = tmp_path / "run.safetensors"
    model, other = small(), small()
    expected = nits.fit(other, rows(), max_steps=4, recipe=QUICK, progress=False)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nits.atomic.write", full)
    with pytest.warns(UserWarning, match=r"could not be written \(No space left on device\)"):
        history = nits.fit(
            model, rows(), max_steps=4, recipe=QUICK, progress=False, checkpoint=place
        )
    assert history.validation == expected.validation
    assert torch.equal(weights(model), weights(other))
    assert not place.exists()


def test_a_checkpoint_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    place = tmp_path / "folder"
    place.mkdir()
    model = small()
    with pytest.raises(
        OSError, match=r"cannot be kept: .* must be a file to write, but is a folder"
    ):
        nits.fit(model, rows(), max_steps=4, progress=False, checkpoint=place)


def test_resume_refuses_files_of_other_programs(tmp_path: Path) -> None:
    place = tmp_path / "other.safetensors"
    save_file({"a": torch.ones(3)}, place)
    message = "must be a nits checkpoint 3, but is a safetensors file of another program; pass"
    with pytest.raises(ValueError, match=message):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place)
