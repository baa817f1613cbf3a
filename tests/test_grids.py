"""Even grids: found in any magnitude and type, verified by the function that encodes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import grids

rng = np.random.default_rng(0)
N = 2000


def z_scores(k: NDArray[Any]) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = (k - k.mean()) / k.std()
    return scores


COUNTS = rng.poisson(30, N)
HOURS = np.datetime64("2020-01-01", "ns") + rng.integers(0, 99_999, N).astype("timedelta64[h]")
COLUMNS: dict[str, tuple[NDArray[Any], float]] = {
    "integers": (COUNTS, 1.0),
    "floats that are integers": (COUNTS.astype(float), 1.0),
    "multiples of ten": (COUNTS * 10.0, 10.0),
    "tenths": (np.round(rng.normal(20, 8, N), 1), 0.1),
    "tenths in float32": (np.round(rng.normal(20, 8, N), 1).astype(np.float32), 0.1),
    "quarters at 1.5e6": (1.5e6 + rng.integers(0, 4000, N) / 4, 0.25),
    "1e-7 to 5e-7": (rng.integers(1, 6, N) * 1e-7, 1e-7),
    "degrees F of whole degrees C": (rng.integers(-20, 40, N) * 1.8 + 32, 1.8),
    "prices ending in .99": (rng.integers(1, 80, N) + 0.99, 1.0),
    "binary fractions": (rng.integers(0, 5000, N) / 1024, 1 / 1024),
    "thirds": (rng.integers(0, 100, N) / 3, 1 / 3),
    "z-scored counts": (z_scores(COUNTS), 1 / COUNTS.std()),
    "z-scored counts in float32": (z_scores(COUNTS).astype(np.float32), 1 / COUNTS.std()),
    "z-scores with 15 digits": (
        np.array([float(f"{value:.15g}") for value in 20 * z_scores(COUNTS)]),
        20 / COUNTS.std(),
    ),
    "few of a million": (z_scores(rng.integers(0, 10**6, 300) * 1e-6), 0.0),
    "1e-300": (rng.integers(1, 60, N) * 1e-300, 1e-300),
    "1e300": (rng.integers(1, 60, N) * 1e300, 1e300),
    "denormal": (rng.integers(1, 60, N) * 5e-324, 5e-324),
    "int64 near 2^62": (rng.integers(0, 1000, N) * 3 + 2**62, 3.0),
    "uint64 near its end": (
        np.uint64(2**64 - 6000) + 5 * rng.integers(0, 1000, N).astype(np.uint64),
        5.0,
    ),
    "hours": (HOURS, 3.6e12),
    "days as dates": (np.array(["2024-02-28", "2024-03-01", "2024-03-02"], "M8[s]"), 86_400.0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_value_lies_on_the_grid_that_was_found(name: str) -> None:
    values, width = COLUMNS[name]
    grid = grids.find(values)
    assert grid is not None
    if width:
        assert grid.width == pytest.approx(width, rel=1e-6)
    k, on = grid.encode(values)
    assert on.all()
    assert k.min() == 0
    again, still = grid.encode(grid.decode(k))
    assert still.all()
    assert (again == k).all()


@pytest.mark.parametrize(
    "name",
    [
        "tenths",
        "tenths in float32",
        "quarters at 1.5e6",
        "1e-7 to 5e-7",
        "prices ending in .99",
        "int64 near 2^62",
        "uint64 near its end",
        "hours",
        "denormal",
    ],
)
def test_decimals_and_integers_come_back_to_the_last_digit(name: str) -> None:
    values = grids.integers(COLUMNS[name][0])
    grid = grids.find(values)
    assert grid is not None
    assert (grid.decode(grid.encode(values)[0]).astype(values.dtype) == values).all()


@pytest.mark.parametrize(
    "values",
    [
        rng.normal(size=N),
        rng.normal(size=N).astype(np.float32),
        rng.standard_cauchy(N),
        np.exp(3 * rng.normal(size=N)),
        np.sqrt(COUNTS),
        np.append(rng.normal(size=N), 1e300),
        np.append(rng.normal(size=N), 2e9),
        np.zeros(3),
    ],
)
def test_real_numbers_lie_on_no_grid(values: NDArray[Any]) -> None:
    assert grids.find(values) is None


def test_a_few_numbers_lie_on_no_grid_though_some_step_divides_them() -> None:
    for seed in range(300):
        few = np.random.default_rng(seed).random(4)
        assert grids.find(few) is None
        assert grids.find(few.astype(np.float32)) is None


def test_places_too_far_to_be_counted_are_off_the_grid() -> None:
    ends = np.array([-(2**63), 0, 2**63 - 1])
    grid = grids.find(ends)
    assert grid is not None
    assert grid.encode(ends)[1].tolist() == [True, False, False]


def test_other_values_are_off_the_grid() -> None:
    tenths = grids.find(COLUMNS["tenths"][0])
    assert tenths is not None
    _, on = tenths.encode(np.array([20.05, 1e6 + 0.1, -3.0, np.nan, np.inf]))
    assert on.tolist() == [False, True, True, False, False]
    threes = grids.find(COLUMNS["int64 near 2^62"][0])
    assert threes is not None
    k, on = threes.encode(np.array([2**62 - 3, 2**62 + 1, -(2**63) + 1, 2**62 + 9]))
    assert on.tolist() == [True, False, False, True]
    assert k[[0, 3]].tolist() == [-1, 3]


def test_values_that_rounding_sets_apart_are_at_one_place() -> None:
    values = np.array([0.1, 0.2, 0.1 + 0.2, 0.3, 0.7, 0.5])
    grid = grids.find(values)
    assert grid is not None
    assert grid.encode(values)[0].tolist() == [0, 1, 2, 2, 6, 4]


def test_integers_between_and_beyond_listed_ones_have_the_nearest_place() -> None:
    k, same = grids.place(np.array([3, 17, 40]), np.array([-9, 3, 9, 11, 28, 29, 40, 99]))
    assert k.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert np.flatnonzero(same).tolist() == [1, 6]


def test_places_among_listed_values() -> None:
    listed = np.array([-1.0, 0.1, 0.3, 7.0])
    k, same = grids.place(listed, np.array([0.1 + 0.2, 0.31, -5.0, 7.0, 100.0]))
    assert k.tolist() == [2, 2, 0, 3, 3]
    assert same.tolist() == [True, False, False, True, False]
    whole = np.array([2**62, 2**62 + 1, 2**62 + 2])
    k, same = grids.place(whole, np.array([2**62 + 1, 2**62 + 3, 2**62 + 2, 0]))
    assert same.tolist() == [True, False, True, False]
    assert k[[0, 2]].tolist() == [1, 2]


@pytest.mark.parametrize(("first", "last"), [(3, 2**64 - 1), (-(2**63) + 5, 2**63 - 1)])
def test_the_widest_ranges_are_decoded_modulo_two_to_the_64(first: int, last: int) -> None:
    k = np.array([0, 1, 2**62, last - first, 2**64 - 2], np.uint64)
    found = grids.Grid(first, 1).decode(k).tolist()
    assert found == [first, first + 1, first + 2**62, last, first - 2]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_a_list_of_one_value_has_a_place_for_it(dtype: type) -> None:
    k, at = grids.place(np.array([7], dtype), np.array([3, 7, 9], dtype))
    assert k.tolist() == [0, 0, 0]
    assert at.tolist() == [False, True, False]
