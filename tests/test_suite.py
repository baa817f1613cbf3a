"""The suite of public tables, on made-up ones: whole runs, and each figure where it is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pytest
import suite
import suite_anomalies
import suite_densities
import suite_page
import suite_published
import suite_samples
from models import synthesizers

import nits


def toy(rows: int, seed: int = 0) -> Any:
    """Integers, decimals with holes, strings with holes and real numbers."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 50, rows)
    table = pandas.DataFrame({"a": a, "b": np.round(a / 10 + rng.normal(size=rows), 1)})
    table["c"] = np.array(["x", "y", "z"])[rng.integers(0, 3, rows)]
    table["d"] = rng.normal(size=rows)
    table.loc[rng.random(rows) < 0.2, "b"] = np.nan
    table.loc[rng.random(rows) < 0.2, "c"] = None
    return table


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    for folder in ("tables", "anomalies", "results"):
        (tmp_path / folder).mkdir()
    toy(300).to_csv(tmp_path / "tables" / "toy.csv.gz", index=False)
    x, y = rng.normal(size=(200, 3)), (np.arange(200) >= 180).astype(int)
    np.savez(tmp_path / "anomalies" / "odd.npz", X=x + 20 * y[:, None], y=y)
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    return tmp_path


def test_the_suite_runs_whole_and_its_page_is_written(data: Path) -> None:
    folder = data / "results"
    assert suite.main(["--quick"], folder) == 0
    found = json.loads((folder / "suite-toy.json").read_text())
    ours = found["nits"]["results"]
    assert {"command", "commit", "versions", "hardware", "package"} < found["nits"].keys()
    assert math.isfinite(ours["all_columns"]["nats"])
    assert ours["ranges"]["samples"] == suite.QUICK_SAMPLES
    odd = json.loads((folder / "suite-odd.json").read_text())
    assert odd["detectors"]["results"] == dict.fromkeys(odd["detectors"]["results"], 1.0)
    page = suite_page.suite_tables(folder)
    assert f"| toy | nits | {ours['detection']:.3f} |" in page
    assert f"| odd | {odd['nits']['results']['auroc']:.3f} | 1.000 |" in page
    assert "not run" not in page


def test_rivals_that_are_there_are_kept(data: Path) -> None:
    folder = data / "results"
    kept = {"kind": "anomalies", "detectors": {"results": {"kNN": 0.25}}}
    (folder / "suite-odd.json").write_text(json.dumps(kept))
    assert suite.main(["--quick", "--model", "rivals", "--only", "odd"], folder) == 0
    assert json.loads((folder / "suite-odd.json").read_text()) == kept


def test_an_unknown_table_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(["--only", "none"]) == 2
    assert capsys.readouterr().err == "error: NITS_DATA must have a table none, but has none.\n"


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1, 2, 7], 1.0),
        ([0.5, 1.2, 3.0] * 3, 0.1),
        ([0.5, 1.2, 3.0], 0.0),
        ([0.1234567, 1] * 3, 0.0),
        ([0.001, 5000.0] * 3, 0.0),
    ],
)
def test_steps_are_of_integers_and_of_decimals_that_repeat(values: list[Any], step: float) -> None:
    assert suite_densities.step_of(np.array(values)) == step


def test_our_nats_are_on_the_base_measure_that_rivals_have() -> None:
    class Model:
        schema_ = SimpleNamespace(
            columns=[
                SimpleNamespace(name="grid", kind="continuous", atoms=(0.5,)),
                SimpleNamespace(name="real", kind="integer"),
                SimpleNamespace(name="text", kind="categorical"),
            ]
        )

        def score_samples(self, table: Any, per_column: bool) -> Any:
            return np.full((len(table), 3), -1.0)

        def unseen(self, table: Any) -> Any:
            return np.array([[False, False, True]] * len(table))

    table = pandas.DataFrame({"grid": [0.5, 0.7], "real": [0.25, 0.5], "text": ["a", "b"]})
    found = suite_densities.ours(Model(), table, {"grid": 0.1, "real": 0.0})
    # An atom is a probability already; the real numbers are 0.25 apart.
    expected = -3 + math.log(0.1) / 2 - math.log(0.25)
    assert found["nats"] == pytest.approx(expected)
    assert found["rows_outside"] == 0
    assert found["unseen"] == {"grid": 0, "real": 0, "text": 2}


def test_rivals_have_the_densities_of_gaussian_rows() -> None:
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"a": 3 * rng.normal(size=2000), "b": rng.normal(size=2000)})
    found = suite_densities.rivals(table, quick=True)
    expected = -math.log(2 * math.pi * math.e) - math.log(3)
    assert found["gaussian"]["nats"] == pytest.approx(expected, abs=0.2)
    assert found["gaussian_mixture"]["nats"] == pytest.approx(expected, abs=0.2)
    assert found["kernel_density"]["nats"] == pytest.approx(expected, abs=0.3)


def test_rows_of_the_same_kind_are_not_told_apart_and_others_are() -> None:
    assert abs(suite_samples.detection(toy(200), toy(200, seed=1)) - 0.5) < 0.15
    assert suite_samples.detection(toy(200), toy(200, seed=1).assign(b=1.0)) > 0.95  # no holes


def test_training_on_rows_without_the_relation_is_worth_nothing() -> None:
    train, test = toy(1000), toy(400, seed=1)
    related = suite_samples.transfer(train, test, "b")
    assert related > 0.4
    shuffled = train.assign(b=train["b"].sample(frac=1, random_state=0).to_numpy())
    assert suite_samples.transfer(shuffled, test, "b") < 0.1
    train, test = (part.assign(a=(part["a"] > 25).astype(int)) for part in (train, test))
    assert suite_samples.transfer(train, test, "a") > 0.8


def test_values_beyond_the_range_and_wrong_ones_are_counted() -> None:
    train = pandas.DataFrame({"n": [0.0, 1.0, 2.0] * 4, "s": ["x", "y", "x"] * 4, "i": range(12)})
    drawn = pandas.DataFrame(
        {
            "n": [-1.0, 3.0, 0.5, math.inf, math.nan, 1.0],
            "s": ["x", "w", None, "y", "x", "x"],
            "i": [0.0, 1, 2, 3, 4, 5],
        }
    ).astype({"s": train["s"].dtype})
    found = suite_samples.ranges(lambda count: drawn, train, 2 * suite_samples.AT_ONCE)["columns"]
    assert found["n"] == {"known": 12, "below": 2, "above": 2, "wrong": 8}
    assert found["s"] == {"known": 12, "wrong": 4}
    assert found["i"] == {"known": 12, "wrong": 12}


def test_half_of_the_normal_rows_are_trained_on() -> None:
    x, y = np.arange(100), (np.arange(100) < 10).astype(int)
    train, test, label = suite_anomalies.parted(x, y)
    assert len(train) == 45
    assert train.min() >= 10
    assert sorted([*train, *test]) == list(range(100))
    assert label.sum() == 10


def test_rows_without_density_are_anomalies_before_all_others() -> None:
    scores, y = np.array([-np.inf, -5.0, 1.0, 2.0]), np.array([1, 0, 1, 0])
    assert suite_anomalies.auroc(scores, y) == 0.75


def test_a_rival_gets_a_table_without_holes_and_gives_one_as_the_data_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def again(table: Any, categories: list[str], quick: bool) -> Any:
        seen.append((table.isna().sum().sum(), categories))
        return lambda count: table.assign(d=100.0).sample(count, replace=True, random_state=0)

    monkeypatch.setitem(synthesizers.FITS, "arf", again)
    table = toy(400).assign(code=np.arange(400) % 3)
    sample, rows = synthesizers.fit("arf", table, quick=False)
    found = sample(1000)
    assert (seen, rows) == ([(0, ["c", "code"])], 400)
    assert found.dtypes.to_dict() == table.dtypes.to_dict()
    for name in "bc":
        assert found[name].isna().mean() == pytest.approx(table[name].isna().mean(), abs=0.05)
    assert np.allclose(found["d"], table["d"].max())  # kept within the range
    assert np.allclose(found["b"].dropna() * 10, (found["b"].dropna() * 10).round())


@pytest.mark.parametrize("name", [*synthesizers.FITS])
@pytest.mark.filterwarnings("ignore")  # what the rivals warn of is theirs
def test_rivals_sample_rows_of_the_same_types(name: str) -> None:
    pytest.importorskip(suite.PACKAGES[name])
    table = toy(200)
    sample, _ = synthesizers.fit(name, table, quick=True)
    found = sample(50)
    assert found.dtypes.to_dict() == table.dtypes.to_dict()
    assert set(found["c"].dropna()) <= {"x", "y", "z"}


def test_a_share_is_off_by_more_than_chance() -> None:
    assert not suite_page.is_off(1, 5.3)
    assert not suite_page.is_off(250, 100)
    assert suite_page.is_off(400, 100)
    assert suite_page.is_off(10, 100)


def test_a_column_beyond_its_share_and_a_table_left_behind_are_named() -> None:
    columns = {
        "good": {"known": 999, "below": 1000, "above": 900, "wrong": 0},
        "bad": {"known": 999, "below": 0, "above": 9000, "wrong": 2},
        "limited": {"known": 999, "below": 0, "above": 0, "wrong": 0},
    }
    ours = {"ranges": {"samples": 1_000_000, "columns": columns}}
    line = suite_page.ranges_table({"t": {"nits": ours}}).splitlines()[-1]
    assert line == "| t | 1,000,000 | 3 | 2 | 0.95 (good) | 4.50 (bad) | bad | bad 2 |"
    rivals = {"kNN": 0.81, "LOF": 0.3}
    tables = {
        name: {"nits": {"auroc": value}, "detectors": rivals}
        for name, value in {"one": 0.5, "two": 0.7}.items()
    }
    page = suite_page.anomaly_table(tables)
    assert "| mean | 0.600 | 0.810 | 0.300 |" in page
    assert page.endswith("Not below 0.6 where a rival has 0.8: 1 of 2 tables.")


def test_published_splits_are_scored_and_written(data: Path) -> None:
    rng = np.random.default_rng(0)
    (data / "miniboone").mkdir()
    for part, rows in (("train", 300), ("validation", 50), ("test", 40)):
        np.save(data / "miniboone" / f"{part}.npy", rng.normal(size=(rows, 3)).astype(np.float32))
    np.save(data / "miniboone" / "train_weight.npy", rng.integers(1, 3, 300).astype(np.float64))
    folder, models = data / "results", data / "models"
    command = ["--quick", "--only", "miniboone", "--models", str(models)]
    assert suite_published.main(command, folder) == 0
    assert "| miniboone | 300, weighted | 1 |" in suite_page.suite_tables(folder)
    assert "not scored" in suite_page.suite_tables(folder)
    assert suite_published.main([*command, "--test"], folder) == 0
    found = json.loads((folder / "suite-published-miniboone.json").read_text())["nits"]["results"]
    test = np.load(data / "miniboone" / "test.npy")
    kept = nits.load(models / "miniboone.nits")
    assert found["test"]["nats"] == pytest.approx(kept.score(test), abs=1e-6)
    assert "not scored" not in suite_page.suite_tables(folder)


def test_kept_models_of_anomalies_are_not_fitted_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, models = data / "results", str(data / "models")
    command = ["--quick", "--only", "odd", "--model", "nits", "--models", models]
    assert suite.main(command, folder) == 0
    first = json.loads((folder / "suite-odd.json").read_text())["nits"]["results"]
    monkeypatch.delattr(suite, "_fitted")
    assert suite.main(command, folder) == 0
    assert json.loads((folder / "suite-odd.json").read_text())["nits"]["results"] == first


def test_the_page_tells_what_each_sort_is_worth() -> None:
    sorts = [
        {"sort": "networks", "weight": 0.75, "held_out": -1.5},
        {"sort": "straight lines", "weight": 0.0, "held_out": None},
    ]
    ours = {"held_out": [-1.25, 0.1], "sorts": sorts, "calibrated": True}
    other = {"splits": {"0": {**ours, "sorts": [sorts[0], {**sorts[0], "sort": "other"}]}}}
    page = suite_page.sorts_table({"a": {"nits": ours}}, {"b": {"nits": other}}, {"c": {}})
    assert "| table | networks | straight lines | other | the mixture | with curves |" in page
    assert "| a | −1.500, 75% | –, 0% | – | −1.250 ± 0.200 | yes |" in page
    assert "| b | −1.500, 75% | – | −1.500, 75% | −1.250 ± 0.200 | yes |" in page
    assert "| c |" not in page
