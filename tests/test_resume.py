"""A fit that was interrupted or killed goes on from its checkpoint, to the same model."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mixed_table import mixed, small
from nits import NITSDensity
from nits.tables import judging, resume, teaching
from nits.tables.defaults import FEW_STYLES
from nits.training.loop import Loop

OPTIONS: dict[str, Any] = {"members": 7, "max_steps": 6, "hidden": 8}
"""Two rounds: six networks and four simple members, then one network more; six steps each."""


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed(100)[["size", "count"]]


@pytest.fixture(autouse=True, scope="module")
def two_rounds() -> Iterator[None]:
    """Has every sort learn from further folds, as if it added something."""
    with pytest.MonkeyPatch.context() as patch:
        sorts = {style.name for style in FEW_STYLES}
        patch.setattr(judging.Judged, "kept", property(lambda self: sorts))
        yield


@pytest.fixture(scope="module")
def whole(table: Any) -> NITSDensity:
    return small(**OPTIONS).fit(table)


def same(one: NITSDensity, other: NITSDensity) -> bool:
    """Returns whether two models have the same bits, and say the same of themselves."""
    states = one.model_.state_dict(), other.model_.state_dict()
    alike = states[0].keys() == states[1].keys()
    alike = alike and all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    told = [(model.members_, model.sorts_, model.held_out_) for model in (one, other)]
    losses = [
        [each["validation"] for each in (model.history_, *model.history_["others"])]
        for model in (one, other)
    ]
    return alike and told[0] == told[1] and losses[0] == losses[1]


def interrupting(patch: pytest.MonkeyPatch, after: int) -> None:
    """Presses Ctrl-C in the middle of a step."""
    taken, counts = [0], Loop.counts

    def stepped(self: Loop, value: float, norm: float) -> bool:
        taken[0] += 1
        if taken[0] == after:
            os.kill(os.getpid(), signal.SIGINT)
        return counts(self, value, norm)

    patch.setattr(Loop, "counts", stepped)


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
@pytest.mark.parametrize("moments", [[1], [41], [8, 12, 3]])
def test_an_interrupted_fit_goes_on_bit_for_bit(
    table: Any, whole: NITSDensity, tmp_path: Path, moments: list[int]
) -> None:
    model = small(**OPTIONS, checkpoint=tmp_path / "kept")
    for after in moments:
        with pytest.MonkeyPatch.context() as patch:
            interrupting(patch, after)
            model.fit(table)
        assert any(
            each["stopped"] == "interrupted" for each in (model.history_, *model.history_["others"])
        )
        assert not same(model, whole)
    assert same(model.fit(table), whole)


def test_members_that_have_learned_do_not_learn_again(
    table: Any, whole: NITSDensity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(**OPTIONS, checkpoint=tmp_path / "kept").fit(table)
    assert same(model, whole)

    def never(*_: Any) -> Any:
        raise AssertionError("a member learned again")

    monkeypatch.setattr(teaching, "_taught", never)
    assert same(model.fit(table), whole)
    monkeypatch.undo()
    (tmp_path / "kept" / "member-02.safetensors").unlink()
    assert same(model.fit(table), whole)


def test_a_lone_network_goes_on_too(table: Any, tmp_path: Path) -> None:
    model = small(checkpoint=tmp_path / "kept")
    with pytest.MonkeyPatch.context() as patch:
        interrupting(patch, 5)
        model.fit(table)
    assert model.history_["stopped"] == "interrupted"
    assert same(model.fit(table), small().fit(table))


def test_without_a_seed_the_fit_goes_on_with_its_own(table: Any, tmp_path: Path) -> None:
    model = small(checkpoint=tmp_path / "kept", random_state=None)
    with pytest.MonkeyPatch.context() as patch:
        interrupting(patch, 5)
        model.fit(table)
    seed = resume.seed(tmp_path / "kept")
    assert seed is not None
    model.fit(table)
    assert resume.seed(tmp_path / "kept") == seed
    again = small(checkpoint=tmp_path / "kept", random_state=None).fit(table)
    assert same(model, again)


OTHERS: dict[str, Any] = {
    "is of a fit with hidden=16, but this one has 24; resume with the": {"hidden": 24},
    "is of a fit with max_steps=20, but this one has 21; resume": {"max_steps": 21},
    "is of a fit with seed=209652396, but this one has": {"random_state": 7},
    r"is of a fit with support=None, but this one has \{'size'": {"support": {"size": (0, None)}},
}


@pytest.fixture(scope="module")
def kept(table: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fits") / "kept"
    small(checkpoint=place).fit(table)
    return place


@pytest.mark.parametrize("message", OTHERS)
def test_the_checkpoint_of_another_fit_is_refused(table: Any, kept: Path, message: str) -> None:
    support = OTHERS[message].get("support")
    options = OTHERS[message] if support is None else {"support": {"size": (0.0, np.inf)}}
    with pytest.raises(ValueError, match=message):
        small(checkpoint=kept, **options).fit(table)


def test_other_rows_of_the_same_number_are_refused(table: Any, kept: Path) -> None:
    other = table.copy()
    other.loc[3, "size"] += 0.5
    message = "is of a fit to another table; resume with the rows of the first, in the same order"
    with pytest.raises(ValueError, match=message):
        small(checkpoint=kept).fit(other)
    with pytest.raises(ValueError, match=message):
        small(checkpoint=kept).fit(table, sample_weight=np.arange(1.0, len(table) + 1))


def test_something_else_in_place_of_a_checkpoint_is_refused(table: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ValueError, match="checkpoint must be a folder that a fit made, or a"):
            small(checkpoint=place).fit(table)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_damaged_member_is_refused_in_one_sentence(
    table: Any, kept: Path, tmp_path: Path
) -> None:
    for place in kept.iterdir():
        data = bytearray(place.read_bytes())
        data[-3] ^= place.name.startswith("member")
        (tmp_path / place.name).write_bytes(data)
    with pytest.raises(ValueError, match=r"member-00.safetensors is damaged: its checksum"):
        small(checkpoint=tmp_path).fit(table)


def test_models_do_not_name_the_checkpoint(table: Any, kept: Path, tmp_path: Path) -> None:
    small(checkpoint=kept).fit(table).save(tmp_path / "m.nits")
    assert str(kept).encode() not in (tmp_path / "m.nits").read_bytes()


SCRIPT = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from mixed_table import mixed, small
from nits.tables import judging, members, resume, sharing
from nits.tables.defaults import FEW_STYLES

resume.MINUTES = 0.001
sharing.WORTH_PROCESSES = float(sys.argv[4])
options = {"members": 7, "max_steps": 60, "hidden": 16}
table = mixed(300)[["size", "count", "city"]]
small(**options, checkpoint=sys.argv[1]).fit(table).save(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("worth", ["0", "inf"], ids=["processes", "one process"])
def test_kill_9_at_random_moments_then_resume(tmp_path: Path, worth: str) -> None:
    import nits

    place, out = tmp_path / "kept", tmp_path / "m.nits"
    command = [sys.executable, "-c", SCRIPT, str(place), str(Path(__file__).parent)]
    chance = random.Random(0)
    for _ in range(4):
        process = subprocess.Popen([*command, str(out), worth])
        before = _latest(place)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _latest(place) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1.5))
        process.kill()
        process.wait()
    subprocess.run([*command, str(out), worth], check=True)
    subprocess.run(
        [*command[:3], str(tmp_path / "other"), command[4], str(tmp_path / "w.nits"), worth],
        check=True,
    )
    assert same(nits.load(out), nits.load(tmp_path / "w.nits"))
    assert sorted(p.name for p in place.iterdir() if p.name.endswith(".part")) == []


def _latest(place: Path) -> int:
    """Returns when a member was kept last."""
    found = [path.stat().st_mtime_ns for path in place.glob("member-*.safetensors")]
    return max(found, default=0)
