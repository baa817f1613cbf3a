"""The benchmark of questions: pairs of columns by what a user gets and by roles, and its page."""

import json
from pathlib import Path
from typing import Any

import ask_table
import brute_force
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


def test_bands_count_values_at_their_edges_in_part() -> None:
    """By hand: of 99 draws, ranks below 0.05 and from 0.95 on lie outside."""
    drawn = np.arange(1, 100)[:, None] * np.ones(4)
    truth = np.array([3.5, 4.0, 50.5, 95.0])
    assert question_imputation.within(drawn, truth).tolist() == pytest.approx([0, 0, 1, 0.5])
    repeated = np.repeat([[0.0], [1.0]], [90, 9], axis=0)  # ranks 0 to 0.91, and 0.90 to 1
    parts = question_imputation.within(np.repeat(repeated, 2, 1), np.array([0.0, 1.0]))
    assert parts.tolist() == pytest.approx([0.86 / 0.91, 0.05 / 0.1])


def test_bands_of_whole_numbers_hold_what_they_claim() -> None:
    source = np.random.default_rng(0)
    drawn, truth = source.poisson(1, (99, 4000)), source.poisson(1, 4000)
    found = question_imputation.within(drawn.astype(float), truth.astype(float))
    assert found.mean() == pytest.approx(0.9, abs=0.02)  # four standard errors, of all or nothing


def test_brute_force_agrees_with_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brute_force, "QUESTIONS", 33)
    assert sum(brute_force.shared_out(33).values()) == 33
    args = ["--only", "ring", "--rows", "60000", "--steps", "20"]
    assert brute_force.main(args, tmp_path) == 0
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())["results"]
    assert found["questions"] == len(found["misses"]) == 4
    assert found["within_3_errors"] == 4
    assert f"| 60,000 | 4 of 4 | {found['mean_square']:.2f} |" in ask_table.ask_tables(tmp_path)


def test_times_of_answers_are_listed(tmp_path: Path) -> None:
    each = {f"verb {k}": {"seconds": {"median": k / 100}} for k in (1, 2, 3)}
    record = {"results": {"a model": {"a range": each}}}
    (tmp_path / "answer-time.json").write_text(json.dumps(record))
    assert "| a model | a range | 10 | 20 | 30 |" in ask_table.ask_tables(tmp_path)
