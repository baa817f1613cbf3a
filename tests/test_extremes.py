"""The figure of held-out rows counts extreme values as they would count outside the table."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch

from nits import NITS, NITSDensity, Rows
from nits.tables import zones
from nits.tables.columns.real import Real
from nits.tables.extremes import extremes
from registry import randomized


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    return pandas.DataFrame(
        {"x": x, "y": 2 * x + rng.normal(size=200), "k": rng.integers(0, 4, 200)}
    )


@pytest.fixture(scope="module")
def model(table: Any) -> NITSDensity:
    return NITSDensity(max_steps=2, random_state=0).fit(table)


def test_an_extreme_value_counts_as_beyond_the_next(table: Any, model: NITSDensity) -> None:
    """As it does for a model of the other rows, whose tail begins at the next value."""
    numbers = torch.from_numpy(model.schema_.numbers(zones.read(table))[0])
    found = extremes(model.schema_.columns, numbers)
    assert sorted(found.rows.tolist()) == sorted(
        int(index) for name in "xy" for index in (table[name].argmin(), table[name].argmax())
    )
    at = found.rows.tolist().index(int(table["x"].argmax()))
    column = model.schema_.columns[0]
    assert isinstance(column, Real)
    ruler, rows = column.ruler, table["x"].sort_values()
    law, u = ruler.upper, ruler.scale.to(rows.to_numpy()[-2:])
    expected = np.log(law.rate) - law.rate * (u[1] - u[0]) - np.log(column.beyond.upper.left)
    assert found.log_prob[at] == pytest.approx(expected, rel=1e-4)


def test_a_limit_near_the_extreme_value_leaves_room_for_it() -> None:
    """The room of a tail is counted from the value beside the extreme one."""
    x = np.append(np.random.default_rng(1).exponential(size=300), 40.0)
    table = pandas.DataFrame({"x": x})
    model = NITSDensity(max_steps=2, random_state=0, support={"x": (0.0, 40.001)}).fit(table)
    numbers = torch.from_numpy(model.schema_.numbers(zones.read(table))[0])
    found = extremes(model.schema_.columns, numbers)
    assert 300 in found.rows
    assert np.isfinite(found.log_prob).all()


def test_only_entries_that_were_held_out_change(table: Any, model: NITSDensity) -> None:
    numbers = torch.from_numpy(model.schema_.numbers(zones.read(table))[0])
    found = extremes(model.schema_.columns, numbers)
    row = int(table["y"].argmin())
    held_out = torch.tensor([3, row, 5])
    scores = np.array([1.0, 2.0, 3.0])
    rows = Rows(numbers)
    after = found.left_out(scores, model.model_, rows, held_out)
    with torch.no_grad():
        inside = model.model_.log_prob_per_column(numbers[row : row + 1])[0].double().numpy()
    here = [k for k, r in enumerate(found.rows) if r == row]
    laws = model.model_.conditionals(numbers[row : row + 1])
    change = 0.0
    for k in here:
        i, end = int(found.columns[k]), found.ends[k]
        low, high = laws[i].cdf(torch.tensor(end.outer).unsqueeze(1)).double().flatten().tolist()
        beyond = np.log(end.slope * (high - low) + end.floor)
        change += beyond + found.log_prob[k] - inside[i]
    assert 3 not in found.rows
    assert 5 not in found.rows
    np.testing.assert_allclose(after, [1.0, 2.0 + change, 3.0], rtol=1e-6)
    assert np.array_equal(scores, [1.0, 2.0, 3.0])
    assert found.left_out(scores, model.model_, rows, torch.tensor([3, 5, 7])) is scores


def test_ties_holes_and_limits_have_no_extremes(model: NITSDensity) -> None:
    column = model.schema_.columns[0]
    assert isinstance(column, Real)
    low, high = column.ends()
    tied = torch.tensor([[low, 0.0, 0.0], [low, 0.1, 0.0], [high, 0.2, 0.0], [high, 0.3, 0.0]])
    assert len(extremes([column], tied).rows) == 0
    holes = torch.full((4, 1), float(column.missing_number))
    assert len(extremes([column], holes).rows) == 0
    density = randomized(lambda: NITS.independent(1), 0)
    none = extremes([], torch.zeros(4, 0))
    scores = np.zeros(2)
    assert none.left_out(scores, density, Rows(torch.zeros(4, 1)), torch.arange(2)) is scores
