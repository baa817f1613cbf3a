"""The suite's regression: figures where they are known, splits that are kept, the page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import suite_page
import suite_regression
from results import Record
from suite_regression import LEVELS, covered, crps, normal_figures, split


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    rows: dict[str, Any] = {f"test_{k}": np.arange(k, 120, 10) for k in range(20)}
    (tmp_path / "regression").mkdir()
    for name, y in {
        "line": x[:, :1] + rng.normal(size=(120, 1)) / 10,
        "marks": x[:, 0] > 0,
    }.items():
        np.savez(tmp_path / "regression" / f"{name}.npz", x=x, y=y.astype(float), **rows)
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    return tmp_path


def test_a_split_has_its_published_rows_and_the_targets_step(data: Path) -> None:
    line, marks = (split(data / "regression" / f"{name}.npz", 3) for name in ("line", "marks"))
    assert list(line.test.index) == [*range(3, 120, 10)]
    assert len(line.train) == 108
    assert not set(line.train.index) & set(line.test.index)
    assert (line.step, marks.step) == (0.0, 1.0)


def test_the_crps_of_a_normal_is_the_closed_form() -> None:
    law, y = math.sqrt(2) * 1.5, np.array([0.0, 1.5])
    quantiles = np.array([law * float(_erfinv(2 * u - 1)) for u in LEVELS])
    # σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) at z = 0 and 1
    at_0 = 2 / math.sqrt(2 * math.pi) - 1 / math.sqrt(math.pi)
    at_1 = math.erf(1 / math.sqrt(2)) + 2 * math.exp(-0.5) / math.sqrt(2 * math.pi)
    expected = 1.5 * (at_0 + at_1 - 1 / math.sqrt(math.pi)) / 2
    assert crps(np.tile(quantiles, (2, 1)), y) == pytest.approx(expected, rel=2e-3)


def _erfinv(u: float) -> Any:
    from scipy.special import erfinv

    return erfinv(u)


def test_a_number_on_the_edge_of_the_interval_counts_in_part() -> None:
    # [0, 0.1] is half inside, [0.4, 0.6] whole, [0.97, 1] not at all; 0.5 is a point.
    above, mass = np.array([0.1, 0.6, 1.0, 0.5, 0.02]), np.array([0.1, 0.2, 0.03, 0.0, 0.0])
    assert covered(above, mass) == pytest.approx((0.5 + 1 + 0 + 1 + 0) / 5)


def test_normal_distributions_have_their_own_figures() -> None:
    rng = np.random.default_rng(0)
    mean, deviation = rng.normal(size=5000), np.full(5000, 2.0)
    y = mean + deviation * rng.normal(size=5000)
    found = normal_figures(mean, deviation, y, 0.0)
    assert found["nll"] == pytest.approx(
        math.log(2) + 0.5 * math.log(2 * math.pi * math.e), abs=0.03
    )
    assert found["rmse"] == pytest.approx(2.0, abs=0.05)
    assert found["coverage"] == found["in_interval"] == pytest.approx(0.9, abs=0.01)
    whole = normal_figures(mean, deviation, np.rint(y), 1.0)
    assert whole["nll"] == pytest.approx(found["nll"], abs=0.05)
    assert whole["coverage"] == pytest.approx(0.9, abs=0.01)


def test_splits_are_kept_and_a_stopped_run_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def counted(part: Any, quick: bool) -> Record:
        measured.append(int(part.test.index[0]))
        return {"rmse": float(len(measured)), "seconds": 0.0}

    monkeypatch.setitem(suite_regression.MODELS, "boosting", ("scikit-learn", counted))
    wanted = ["--only", "line", "--model", "boosting", "--splits"]
    assert suite_regression.main([*wanted, "2"], data) == 0
    assert suite_regression.main([*wanted, "4"], data) == 0
    assert measured == [0, 1, 2, 3]
    assert suite_regression.main([*wanted, "2", "--again"], data) == 0
    assert measured[4:] == [0, 1]
    found = json.loads((data / "suite-regression-line.json").read_text())
    splits = found["boosting"]["results"]["splits"]
    assert {key: one["rmse"] for key, one in splits.items()} == {"0": 5.0, "1": 6.0}


def test_an_unknown_table_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite_regression.main(["--only", "none"]) == 2
    assert capsys.readouterr().err == "error: NITS_DATA must have a table none, but has none.\n"


def test_tables_run_whole_and_the_page_has_them(data: Path) -> None:
    models = ["--model", "boosting", "nits"]
    assert suite_regression.main(["--quick", "--only", "marks", *models], data) == 0
    found = json.loads((data / "suite-regression-marks.json").read_text())
    ours = found["nits"]["results"]["splits"]["0"]
    assert 0 < ours["nll"] < 3
    assert 0 <= ours["coverage"] <= ours["in_interval"] <= 1
    assert "| marks | nits | 2 | " in suite_page.suite_tables(data)


def test_means_are_over_splits_and_errors_over_those_that_boosting_has() -> None:
    ours = {
        str(k): {"nll": -1.0 + k, "crps": 0.5, "rmse": 2.0 + k, "coverage": 0.9, "in_interval": 0.9}
        | {"seconds": 3.0, "rows_outside": 0}
        for k in range(3)
    }
    boosting = {str(k): {"rmse": 2.0, "seconds": 1.0} for k in range(2)}
    tables = {"t": {"nits": {"splits": ours}, "boosting": {"splits": boosting}}}
    lines = suite_page.regression_table(tables).splitlines()[-2:]
    figures = "0.000 ± 1.155 | 0.500 | 3.000 | 1.250 | 0.900 | 0.900 | 3.0 |"
    assert lines[0] == f"| t | nits | 3 | {figures}"
    assert lines[1] == "| t | boosting | 2 | – | – | 2.000 | 1.000 | – | – | 1.0 |"


def test_the_out_of_fold_figure_is_held_against_both_errors() -> None:
    one = {"held_out": -1.0, "held_out_error": 0.03, "test": -1.08, "test_error": 0.04}
    made = {"near": {"nits": {"out_of_fold": one}}, "none": {}}
    far = {**one, "held_out_error": None}
    split_0 = {"far": {"nits": {"splits": {"0": {"out_of_fold": {**far, "test": -1.092}}}}}}
    page = suite_page.out_of_fold_table(suite_page.out_of_fold_of({}, made, split_0))
    assert "| near | −1.000 | −1.080 | +0.080 | 0.050 | 1.6 |" in page
    assert "| far | −1.000 | −1.092 | +0.092 | 0.040 | 2.3 |" in page
    assert page.endswith("Within 2 standard errors: 1 of 2 tables.")
