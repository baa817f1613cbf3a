"""The benchmark of questions: pairs of columns by what a user gets and by roles, and its page."""

import json
from pathlib import Path
from typing import Any

import ask_table
import numpy as np
import pytest
import question_imputation
import question_marginals

from mixed_table import mixed, small


@pytest.fixture(scope="module")
def model() -> Any:
    return small(max_steps=3, hidden=8, answers="any").fit(mixed(300))


def test_answers_to_pairs_are_those_of_the_joint_rows(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = {"ROWS": 20_000, "DRAWN": 2000, "PAIRS": 3, "CORNERS": 4}
    for name, size in sizes.items():
        monkeypatch.setattr(question_marginals, name, size)
    found = question_marginals.measured(model, mixed(300), None, "mixed")
    assert found["corners"] == 12
    assert found["within_3_errors"] >= 11
    assert found["answers_mean"] < 0.015
    assert set(found["ks"]) == set(found["answers"]) == set(found["joint_to_data"])
    about = {"table": "mixed", "members": 1, "minutes": None, "steps": 3, "results": found}
    (tmp_path / "questions-marginals-mixed.json").write_text(json.dumps(about))
    page = ask_table.ask_tables(tmp_path)
    assert f"| {found['answers_mean']:.4f} | " in page
    assert f"| {found['within_3_errors']} of 12 | " in page


def test_a_tenth_of_known_entries_is_hidden() -> None:
    table = mixed(400)
    holed, hidden = question_imputation.hide(table, np.random.default_rng(0))
    assert hidden.mean() == pytest.approx(0.1 * table.notna().to_numpy().mean(), rel=0.15)
    assert (holed.isna() == (table.isna() | hidden)).all().all()
