"""Resolutions: steps, significant digits, units in the last place, whichever is coarsest."""

import numpy as np
import pytest

from nits.tables.evidence import resolution
from nits.tables.evidence.resolution import Resolution

rng = np.random.default_rng(0)
EPS = float(np.finfo(np.float64).eps)


def recorded(digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in np.exp(4 * rng.normal(size=500))]


@pytest.mark.parametrize("digits", [1, 2, 3, 5, 8, 12])
def test_significant_digits_are_counted(digits: int) -> None:
    x = np.unique(recorded(digits))
    found = resolution.find(x, 0.0, EPS)
    assert found.digits == digits
    np.testing.assert_allclose(
        found.at(np.array([7.5, 123.0, -0.00456])),
        10.0 ** np.array([1 - digits, 3 - digits, -2 - digits]),
    )


def test_rounding_leaves_recorded_values_alone() -> None:
    x = np.array(recorded(5))
    found = resolution.find(np.unique(x), 0.0, EPS)
    assert (found.rounded(x) == x).all()
    assert found.rounded(np.array([3.14159265, -271.8281828, 1234567.0])).tolist() == [
        3.1416,
        -271.83,
        1234600.0,
    ]


def test_digits_that_say_no_more_than_the_step_do_not_count() -> None:
    assert resolution.find(np.arange(1.0, 100), 1.0, 0.0) == Resolution(1.0, 0, 0.0)
    assert resolution.find(np.arange(100.0, 1100, 100), 100.0, 0.0).digits == 0
    assert (
        resolution.find(np.append(np.arange(1.0, 100), np.arange(100, 990, 10)), 1.0, 0.0).digits
        == 2
    )


def test_full_precision_ends_at_the_last_place() -> None:
    found = resolution.find(np.sort(rng.normal(size=500)), 0.0, EPS)
    assert found.digits == 0
    assert found.at(np.array([2.0, -1e9])).tolist() == [2 * EPS, 1e9 * EPS]
    assert found.at(np.zeros(1))[0] > 0
    assert found.rounded(np.array([1 / 3])).tolist() == [1 / 3]


def test_zeros_alone() -> None:
    assert resolution.find(np.zeros(1), 0.0, EPS).step == 1.0


@pytest.mark.parametrize(
    ("dtype", "precision"), [("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10)]
)
def test_numbers_whose_first_digits_are_large_are_not_short(dtype: str, precision: float) -> None:
    x = rng.uniform(7.5, 9.9, 50).astype(dtype).astype(float)
    assert resolution.find(np.unique(x), 0.0, precision).digits == 0


def test_digits_that_do_not_tell_values_apart_do_not_count() -> None:
    x = np.arange(1e7, 1e7 + 16).astype(np.float32).astype(float)
    assert resolution.find(x, 0.0, 2.0**-23).digits == 0
