"""Orders of the columns: by name, by number, and greedily by what columns say of one another."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from nits.tables import orders

NAMES = ["a", "b", "c"]


@pytest.fixture
def table() -> np.ndarray:
    """Column 2 is column 0 with noise, 3 is column 2 bent, and 1 says nothing of any."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4))
    x[:, 2] = x[:, 0] + 0.5 * x[:, 2]
    x[:, 3] = np.exp(3 * x[:, 2] + 0.1 * x[:, 3])
    return x


def test_each_next_column_is_the_one_best_told(table: np.ndarray) -> None:
    order = orders.greedy(table)
    assert order in ([2, 3, 0, 1], [3, 2, 0, 1])


def test_monotone_maps_change_nothing(table: np.ndarray) -> None:
    bent = np.stack(
        [np.exp(table[:, 0]), table[:, 1] ** 3, table[:, 2] * 1e6, np.log(table[:, 3])], 1
    )
    assert orders.greedy(bent) == orders.greedy(table)


def test_missing_values_and_constants_predict_nothing(table: np.ndarray) -> None:
    table[::5, 0] = np.nan
    for value in (7.0, np.nan):
        table[:, 1] = value
        order = orders.greedy(table)
        assert set(order[:2]) == {2, 3}
        assert order[2:] == [0, 1]


def test_one_column_is_an_order() -> None:
    assert orders.greedy(np.zeros((10, 1))) == [0]


def test_ranks_are_those_of_scipy() -> None:
    column = np.random.default_rng(1).integers(0, 6, 50).astype(float)
    np.testing.assert_allclose(orders._ranks(column) + 1, rankdata(column))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (None, []),
        ("search", []),
        (["c", "a", "b"], [2, 0, 1]),
        ([1, 2, 0], [1, 2, 0]),
        (["b"], [1]),
    ],
)
def test_names_and_numbers_are_positions(
    order: list[str | int] | str | None, expected: list[int]
) -> None:
    assert orders.listed(order, NAMES) == expected


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            "abc",
            "must list columns or be one of 'table', 'greedy', 'search', 'several', but is 'abc'",
        ),
        (["a", "x"], "no column 'x' among"),
        (["a", 0], "must name a column once, but has 'a' twice; drop one"),
    ],
)
def test_what_is_no_order_is_refused(order: str | list[str | int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        orders.listed(order, NAMES)


def test_candidates_differ_and_the_table_comes_first(table: np.ndarray) -> None:
    table[:, 3] = np.round(table[:, 1])
    found = orders.candidates([], table)
    every = list(found.values())
    assert next(iter(found)) == orders.TABLE
    assert every[0] == [0, 1, 2, 3]
    assert found["few values first"] == [3, 0, 1, 2]
    assert found["reversed"] == [3, 2, 1, 0]
    assert len(every) == len({tuple(order) for order in every}) > 5
    assert all(sorted(order) == [0, 1, 2, 3] for order in every)


def test_candidates_leave_the_columns_first_that_are_listed(table: np.ndarray) -> None:
    found = orders.candidates([2, 1], table)
    assert list(found.values()) == [[2, 1, 0, 3], [2, 1, 3, 0]]
