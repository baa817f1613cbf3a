"""The benchmark of tables through the command line, at sizes that take seconds."""

from __future__ import annotations

import math
from pathlib import Path

import command_line
import numpy as np
import pandas
import pytest

from mixed_table import mixed
from nits.cli.main import main


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
        assert main([verb, *map(str, argv), *options, "--quiet"]) == 0

    monkeypatch.setattr(command_line, "command", command)
    found = command_line.fitted(mixed(300), 1.0, tmp_path)
    assert verbs == ["fit", "score"]
    assert found["rows"] == 30
    assert math.isfinite(found["nats"])
    assert found["steps"] == [0, 1, 0, 0, 0, 0, pytest.approx(0.1)]
