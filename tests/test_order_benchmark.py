"""The benchmark of orders: trials of a small table beside longer runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import orders as benchmark
import pandas
import pytest

from nits.tables import search
from nits.tables.search import Trial


def trial(name: str, ahead: float) -> Trial:
    return Trial(name, [0], 1, 0.0, ahead, 0.1)


def test_longer_runs_are_spread_from_the_best_trial_to_the_worst() -> None:
    trials = [trial(str(k), -k / 10) for k in range(1, 8)]
    tried = benchmark.spread([*trials, trial("the table's", 0.0)])
    assert [one.name for one in tried] == ["the table's", "1", "4", "7"]


def test_a_mixture_of_alike_networks_is_their_own() -> None:
    values = np.array([-1.0, -3.0])
    np.testing.assert_allclose(benchmark._mixed([values, values]), values)
    found = benchmark._ahead(np.array([-0.5, -1.5]), values)
    assert found == {"validation_nats": -1.0, "ahead": 1.0, "standard_error": 0.5 / 2**0.5}


def test_a_table_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    rows = {"x": x, "y": x**2 + 0.1 * rng.normal(size=150), "label": np.where(x > 0, "a", "b")}
    (tmp_path / "tables").mkdir()
    pandas.DataFrame(rows).to_csv(tmp_path / "tables" / "made.csv.gz", index=False)
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    monkeypatch.setattr(search, "LEAST", 1)
    monkeypatch.setattr(benchmark, "LONGER", 2)
    monkeypatch.setattr(search, "TRIALS", 1e-6)
    assert benchmark.main(["--only", "made", "--steps", "2"], tmp_path) == 0
    again = ["--only", "made", "--steps", "3", "--orders", "reversed"]
    assert benchmark.main(again, tmp_path) == 0
    found = json.loads((tmp_path / "orders-made.json").read_text())
    assert found["longer"]["2"]["the table's"]["ahead"] == 0.0
    assert list(found["longer"]["3"]) == ["reversed"]
    assert found["trial_steps"] == 2
    assert [one["steps"] for one in found["trials"]] == [1, 1]
    assert -1 <= found["rank_correlation"] <= 1
    for mixture in ("mixture_of_one_order", "mixture_of_two_orders"):
        assert np.isfinite(found[mixture]["validation_nats"])
