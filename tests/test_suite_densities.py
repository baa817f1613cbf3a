"""The suite's densities: rows held out, and rivals on the base measure that columns have."""

from __future__ import annotations

import math

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
