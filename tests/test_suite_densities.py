"""The suite's densities: rows held out, and rivals on the base measure that columns have."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import suite_densities
from sklearn.mixture import GaussianMixture


def test_every_tenth_row_is_held_out() -> None:
    table = pandas.DataFrame({"a": np.arange(105)})
    train, test = suite_densities.held_out(table)
    assert len(test) == 10
    assert sorted([*train["a"], *test["a"]]) == list(range(105))


def test_a_gaussian_of_gaussian_rows_has_their_density() -> None:
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"a": 5 * rng.normal(size=4000), "b": rng.normal(size=4000)})
    expected = -math.log(2 * math.pi * math.e) - math.log(5)
    _, found = suite_densities.density(table, [0.0, 0.0], [GaussianMixture(1)])
    assert found["nats"] == pytest.approx(expected, abs=4 * found["two_standard_errors"])


def test_rivals_have_probabilities_on_a_grid() -> None:
    table = pandas.DataFrame({"a": np.random.default_rng(0).integers(0, 10, 3000)})
    _, found = suite_densities.density(table, [1.0], [GaussianMixture(k) for k in (1, 5)])
    assert found["nats"] < -math.log(10) + 0.05


def test_a_mass_is_spread_as_far_as_the_values_that_were_seen_leave_room() -> None:
    columns = [SimpleNamespace(name="y", kind="integer")]
    test, seen = pandas.DataFrame({"y": [1.0, 5.0]}), pandas.DataFrame({"y": [0.0, 2.0, 4.0, 6.0]})
    shares = np.full((2, 1), -1.0)
    alone = suite_densities.on_base(shares, columns, test, {"y": 0.0})
    assert alone == pytest.approx(-1 - math.log(4))
    found = suite_densities.on_base(shares, columns, test, {"y": 0.0}, seen)
    assert found == pytest.approx(-1.0)  # halfway to 0 and 2, and to 4 and 6
    assert shares == pytest.approx(-1.0)


def test_the_held_out_figure_stands_beside_rows_with_a_density() -> None:
    values = np.array([-1.0, -3.0, -np.inf])
    model = SimpleNamespace(held_out_=-2.5, held_out_error_=0.1)
    found = suite_densities.out_of_fold(model, values)
    assert found == {
        "held_out": -2.5,
        "held_out_error": 0.1,
        "test": -2.0,
        "test_error": pytest.approx(1 / math.sqrt(2)),
    }
    assert suite_densities.out_of_fold(SimpleNamespace(), values)["held_out_error"] is None
