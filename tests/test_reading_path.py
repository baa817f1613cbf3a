"""How many files a reader must open to follow one training step, counted by a tracer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nits
from mixed_table import small
from nits.training.team import Team

SOURCE = Path(nits.__file__).parent
LIMIT = 10
"""Files from the rows of a batch to the gradient of their log-likelihood."""

TRACED = 3
"""The step that is traced: by then everything that is made once has been made."""


def files_of(call: Callable[[], None]) -> list[str]:
    """Returns the files under src/nits of which functions run during a call."""
    found: set[Path] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        found.add(Path(frame.f_code.co_filename))

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    ours = [path.relative_to(SOURCE) for path in found if path.is_relative_to(SOURCE)]
    return sorted(str(path) for path in ours)


def step_of_a_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the files of one training step of a model fitted on a CSV file of real columns."""
    table, files = folder / "table.csv", list[str]()
    x = np.random.default_rng(0).normal(size=(300, 3))
    np.savetxt(table, x, delimiter=",", header="a,b,c", comments="")
    gradient = Team._gradient

    def traced(team: Team) -> list[float]:
        if team.loops[0].step != TRACED:
            return gradient(team)
        values: list[float] = []
        files.extend(files_of(lambda: values.extend(gradient(team))))
        return values

    monkeypatch.setattr(Team, "_gradient", traced)
    small(max_steps=TRACED + 2).fit(table)
    return files


def test_the_tracer_sees_what_a_step_cannot_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = step_of_a_table(tmp_path, monkeypatch)
    assert {"training/team.py", "model/side_by_side.py", "weights/masked_mlp.py"} <= set(files)
    assert "tables/files.py" not in files


def test_a_training_step_takes_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = step_of_a_table(tmp_path, monkeypatch)
    assert len(files) <= LIMIT, "\n".join([f"{len(files)} files:", *files])
