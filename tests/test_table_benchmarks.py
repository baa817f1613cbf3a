"""The benchmarks of tables, at sizes that take seconds."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import command_line
import table_figures

from mixed_table import mixed, small


def test_every_tenth_row_is_held_out() -> None:
    table = pandas.DataFrame({"a": np.arange(105)})
    train, test = command_line.held_out(table)
    assert len(test) == 10
    assert sorted([*train["a"], *test["a"]]) == list(range(105))


def test_the_mixture_of_gaussian_rows_has_their_density() -> None:
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"a": 5 * rng.normal(size=4000), "b": rng.normal(size=4000)})
    expected = -math.log(2 * math.pi * math.e) - math.log(5)
    found = command_line.mixture(table, [0.0, 0.0])
    assert found["nats"] == pytest.approx(expected, abs=4 * found["two_standard_errors"])


def test_the_mixture_has_probabilities_on_a_grid() -> None:
    table = pandas.DataFrame({"a": np.random.default_rng(0).integers(0, 10, 3000)})
    assert command_line.mixture(table, [1.0])["nats"] < -math.log(10) + 0.05


def test_fit_and_score_through_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = []

    def command(verb: str, *argv: object) -> None:
        verbs.append(verb)
        options = ["--max-steps", "5"] if verb == "fit" else []
        assert command_line_main([verb, *map(str, argv), *options]) == 0

    from nits.cli.main import main as command_line_main

    monkeypatch.setattr(command_line, "command", command)
    found = command_line.fitted(mixed(300), 1.0, tmp_path)
    assert verbs == ["fit", "score"]
    assert found["rows"] == 30
    assert math.isfinite(found["nats"])
    assert found["steps"] == [0, 1, 0, 0, 0, 0, pytest.approx(0.1)]


def test_hidden_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "beijing_air"
    folder.mkdir()
    train, test = command_line.held_out(mixed(400))
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    small().fit(train).save(folder / "model.nits")
    monkeypatch.setattr(table_figures, "KEPT", tmp_path)
    found = table_figures.holes(steps=10)
    assert set(found["per_column"]) == {"size", "city"}
    assert found["hidden_entries"] > 0
    assert found["margin"] == pytest.approx(found["given_the_rest"] - found["marginal"])


def test_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    found = table_figures.large(rows=3000)
    assert found["peak_mib"] > 50
    assert found["rows_per_second"] == pytest.approx(3000 / found["seconds"])
