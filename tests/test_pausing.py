"""Members that learn in two parts: the same bits, and no worker idle at the end."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mixed_table import mixed
from nits import NITSDensity
from nits.engines import Local
from nits.engines.engine import Later
from nits.tables import members, pausing
from nits.tables.tasks import Learned, Task
from nits.training import loop
from nits.training.progress import Reporter, Silent


class Caught(Exception):
    """Ends a fit when its tasks are there."""


def made(steps: int) -> Task:
    """Returns what the one network of a fit is to learn."""
    found: list[Task] = []

    class Taking(Local):
        def run(self, function: Any, tasks: Any, **_: Any) -> Any:
            found.extend(tasks)
            raise Caught

    model = NITSDensity(
        members=1, max_steps=steps, hidden=16, blocks=1, random_state=0, engine=Taking(1)
    )
    with pytest.raises(Caught):
        model.fit(mixed(600))
    return found[0]


@pytest.mark.parametrize(
    ("parallel", "shares"),
    [
        (1, [None] * 5),
        (2, [None, None, 0.5, None, None]),
        (3, [None, 1 / 3, None, 2 / 3, None]),
        (5, [None] * 5),
        (8, [None] * 5),
    ],
)
def test_workers_have_as_much_to_do_as_each_other(
    parallel: int, shares: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pausing, "LEAST_SECONDS", 0.0)
    found = pausing.cut([made(10)] * 5, parallel)
    assert [task.cut for task in found] == [s and pytest.approx(s) for s in shares]
    order = pausing.order(found)
    assert sorted(order) == list(range(5))
    assert [found[k].cut is None for k in order] == sorted(s is None for s in shares)


def test_members_of_other_lengths_or_minutes_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [made(10)] * 3
    assert all(task.cut is None for task in pausing.cut(every, 2))  # they take no 10 seconds
    monkeypatch.setattr(pausing, "LEAST_SECONDS", 0.0)
    assert any(task.cut for task in pausing.cut(every, 2))
    longer = [*every[:-1], every[-1]._replace(max_steps=20)]
    timed = [task._replace(max_minutes=1.0) for task in every]
    for tasks in (longer, timed):
        assert all(task.cut is None for task in pausing.cut(tasks, 2))


@pytest.mark.parametrize("kept", [False, True], ids=["alone", "with a checkpoint"])
def test_a_member_that_pauses_learns_the_same(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SHOWN_AFTER", 0.0)
    whole, again = (made(60) for _ in range(2))
    expected = members.taught(whole, Silent())
    assert isinstance(expected, Learned)
    place = tmp_path / "member.safetensors" if kept else None
    task = again._replace(cut=0.3, place=place, course="this")
    half = members.taught(task, Silent())
    assert isinstance(half, Later)
    assert kept == (place is not None and place.is_file())
    found = half.function(made(60)._replace(place=place, course="this"), Silent())
    assert isinstance(found, Learned)
    assert (found.scores == expected.scores).all()
    for name, tensor in expected.density.state_dict().items():
        assert torch.equal(tensor, found.density.state_dict()[name]), name
    assert found.history is not None
    assert expected.history is not None
    assert found.history["validation"] == expected.history["validation"]
    assert found.history["stopped"] == expected.history["stopped"]


def halved(task: str, reporter: Reporter) -> Any:
    return Later(rest) if task.startswith("long") else f"{task} at once"


def rest(task: str, reporter: Reporter) -> str:
    return f"{task} in two parts"


@pytest.mark.parametrize("workers", [1, 2])
def test_an_engine_goes_on_with_tasks_later(workers: int) -> None:
    found = Local(workers).run(halved, ["long", "short", "longer"])
    assert found == ["long in two parts", "short at once", "longer in two parts"]


@pytest.mark.slow
def test_a_fit_with_a_member_in_two_parts_has_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pausing, "LEAST_SECONDS", 0.0)
    options: dict[str, Any] = {"max_steps": 600, "hidden": 16, "members": 3, "random_state": 0}
    one, two = (NITSDensity(**options, engine=Local(n)).fit(mixed(600)) for n in (1, 2))
    states = one.model_.state_dict(), two.model_.state_dict()
    assert all(torch.equal(t, states[1][name]) for name, t in states[0].items())
