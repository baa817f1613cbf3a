"""Holes filled in, entries explained, and columns that tell of one another."""

import math
from itertools import product
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from mixed_table import mixed, small
from nits import NITSDensity
from nits.tables.questions import imputation


@pytest.fixture(scope="module")
def table() -> Any:
    """Two columns that nearly determine one another, a category that one of them decides."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 400)
    frame = pandas.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 0.1, 400)})
    frame["sign"] = np.where(x > 0, "plus", "minus")
    frame["apart"] = rng.normal(5, 1, 400)
    frame.loc[::10, "x"] = np.nan
    frame.loc[5::10, "sign"] = None
    return frame


@pytest.fixture(scope="module")
def model(table: Any) -> NITSDensity:
    return small(max_steps=200).fit(table)


def test_draws_fill_in_holes_and_touch_nothing_else(model: NITSDensity, table: Any) -> None:
    drawn = model.impute(table, draws=2, random_state=0)
    assert len(drawn) == 2
    for each in drawn:
        assert each.notna().all().all()
        assert (each.dtypes == table.dtypes).all()
        assert ((each == table) | table.isna()).all().all()
    holes = table["x"].isna()
    assert (drawn[0]["x"][holes] != drawn[1]["x"][holes]).mean() > 0.8
    again = model.impute(table, draws=2, random_state=0)
    pandas.testing.assert_frame_equal(again[1], drawn[1])


def test_what_comes_later_is_heeded(model: NITSDensity, table: Any) -> None:
    holes = table["x"].isna()
    for how in ("mean", "median", "mode"):
        filled = model.impute(table, how)
        error = (filled["x"] - filled["y"] / 2)[holes]
        assert error.abs().mean() < 0.25  # x alone has a deviation of 1
    known = table["sign"].isna() & (table["y"].abs() > 0.7)
    right = np.where(table["y"] > 0, "plus", "minus")
    assert (filled["sign"] == right)[known].mean() > 0.85


def test_draws_cover_what_was_hidden(model: NITSDensity, table: Any) -> None:
    """Multiple imputations have the spread of the conditional distribution."""
    hidden = table.assign(x=table["x"].where(np.arange(400) % 4 > 0))
    holes = hidden["x"].isna() & table["x"].notna()
    draws = np.stack([each["x"][holes] for each in model.impute(hidden, draws=20, random_state=1)])
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    assert 0.7 < ((table["x"][holes] >= low) & (table["x"][holes] <= high)).mean() <= 1
    assert (high - low).mean() < 1.5  # that of x alone is 3.3


def test_tables_of_every_kind_of_column() -> None:
    table = mixed(120)
    filled = small(max_steps=2).fit(table).impute(table, "mean")
    assert filled.notna().all().all()
    assert ((filled == table) | table.isna()).all().all()


def test_a_table_without_holes_stays_as_it_is(model: NITSDensity, table: Any) -> None:
    whole = table.dropna().reset_index(drop=True)
    pandas.testing.assert_frame_equal(model.impute(whole, "mean"), whole)
    assert len(model.impute(whole, draws=3)) == 3


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ("middle", "draws must be a number or one of mean, median, mode, but is 'middle'"),
        (0, "draws must be a positive integer"),
    ],
)
def test_what_cannot_be_asked(model: NITSDensity, table: Any, draws: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.impute(table, draws)


def test_a_wrong_entry_is_the_most_surprising(model: NITSDensity, table: Any) -> None:
    rows = table.dropna()[:30].reset_index(drop=True)
    rows.loc[3, "apart"] = 12.0
    rows.loc[7, "sign"] = "minus" if rows.loc[7, "x"] > 0 else "plus"
    found = model.explain(rows)
    assert found.surprise.shape == (30, 4)
    assert (found.surprise >= 0).all()
    worst = {(row, name) for row, name, _ in found.worst(4)}
    assert (3, "apart") in worst
    assert list(found.likely.columns) == list(table.columns)
    assert abs(found.likely.loc[3, "apart"] - 5) < 1.5
    assert np.abs(found.likely["x"] - rows["y"] / 2).mean() < 0.3


def test_entries_are_explained_in_the_form_of_their_table(table: Any) -> None:
    """A column's type is that of the table that is explained, not of the one that was learned."""
    times = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(np.arange(60) % 7, unit="D")
    learned = pandas.DataFrame({"x": np.arange(60) % 5, "at": times})
    model = small(max_steps=2).fit(learned)
    asked = polars.DataFrame(learned[:3].to_dict("list"))
    found = model.explain(asked)
    assert found.likely.schema == asked.schema
    with pytest.raises(ValueError, match="must have at least one row to explain, but has none"):
        model.explain(learned[:0])


def test_an_array_needs_names(model: NITSDensity, table: Any) -> None:
    with pytest.raises(ValueError, match="is an array without names; convert it to a DataFrame"):
        model.impute(table.to_numpy(object), 1)


def test_surprise_has_no_unit(table: Any) -> None:
    rows = table.dropna()[["x", "y"]][:20]
    scaled = rows * 1000.0
    a, b = (small(max_steps=2).fit(t).explain(t).surprise for t in (rows, scaled))
    np.testing.assert_allclose(a, b, atol=0.1)


def test_dependence_given_the_rest_is_that_of_the_law() -> None:
    """Against the sum over all cells of three columns of two values, whose law is known."""
    rng = np.random.default_rng(0)
    a = rng.random(600) < 0.5
    b = rng.random(600) < np.where(a, 0.8, 0.2)
    c = rng.random(600) < np.where(b, 0.7, 0.1)
    names = np.array(["no", "yes"], object)
    table = pandas.DataFrame({"a": names[1 * a], "b": names[1 * b], "c": names[1 * c]})
    model = small(max_steps=400).fit(table)
    cells = pandas.DataFrame(list(product(names, repeat=3)), columns=["a", "b", "c"])
    p = np.exp(model.score_samples(cells)).reshape(2, 2, 2)
    p /= p.sum()
    found = model.dependence(2000, given_rest=True)
    for i, j in ((1, 0), (2, 1), (2, 0)):
        rest = p.sum((i, j), keepdims=True)
        told = np.log(p * rest / (p.sum(i, keepdims=True) * p.sum(j, keepdims=True)))
        exact = float((p * told).sum())
        assert abs(found.information[i, j] - exact) < 4 * found.error[i, j] + 1e-3
    assert found.information[1, 0] > 0.07  # and not what b tells of c for a
    assert found.information[2, 0] < 0.03
    assert np.array_equal(found.information, found.information.T)


def test_what_is_given_has_no_dependence(model: NITSDensity, table: Any) -> None:
    found = model.given(sign=table["sign"].dropna().iloc[0]).dependence(16, given_rest=True)
    assert not found.information[found.names.index("sign")].any()


def test_dependence_is_that_of_the_columns(model: NITSDensity) -> None:
    found = model.dependence(draws=4000)
    names = found.names
    assert (found.information == found.information.T).all()
    assert (np.diag(found.information) == 0).all()
    x, y, apart = (names.index(name) for name in ("x", "y", "apart"))
    assert found.information[x, y] > 0.7
    assert found.information[x, apart] < 0.1
    assert {*found.pairs(1)[0][:2]} == {"x", "y"}
    assert found.plot().images
    assert math.isfinite(found.error.max())


def test_rows_with_few_particles_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that the next one nearly determines: few of its draws fit what is observed."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 400)
    table = pandas.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 0.02, 400)})
    model = small(max_steps=150, hidden=32).fit(table)
    holed = table[:40].assign(x=np.nan)

    def distinct() -> float:
        tables = model.impute(holed, 64, random_state=0)
        return float(np.mean([len(set(row)) for row in np.stack([t["x"] for t in tables], 1)]))

    several = distinct()
    monkeypatch.setattr(imputation, "PARTICLES", (256,))
    assert several > 2 * distinct()
    monkeypatch.setattr(imputation, "PARTICLES", (2048,))
    assert distinct() > 0.8 * several
