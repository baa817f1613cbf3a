"""Answers for each row of a table: the same as those to single questions."""

import math
from typing import Any

import numpy as np
import pandas
import pytest

from mixed_table import mixed, small
from nits import NITSDensity
from nits.tables.questions import cloud, likelihood
from questions import nearly_determined, random_model


@pytest.fixture(scope="module")
def model() -> NITSDensity:
    return random_model()


@pytest.fixture(scope="module")
def rows() -> Any:
    return mixed(300).dropna()[["size", "price"]][:4].reset_index(drop=True)


def test_probabilities(model: NITSDensity, rows: Any) -> None:
    found = model.given_rows(rows).probability("rain > 2")
    for k, row in enumerate(rows.to_dict("records")):
        single = model.given(row).probability("rain > 2")
        error = math.hypot(single.error, found.error[k])
        assert abs(single.estimate - found.estimate[k]) < 5 * error + 1e-4


def test_events_before_given_values_are_shares_of_draws() -> None:
    given = pandas.DataFrame({"y": [1.0, -2.0], "z": [0.0, 0.0]})
    found = nearly_determined().given(given).probability("x > 3")
    assert found.estimate.shape == found.error.shape == found.ess.shape == (2,)
    sure = nearly_determined().given(given).probability("x < 3")
    assert (sure.error < 0.5).all()
    assert (np.abs(sure.estimate - 1) < 3 * sure.error).all()


def test_quantiles_means_and_categories(model: NITSDensity, rows: Any) -> None:
    many = model.given_rows(rows, "count > 1")
    quantiles, means, shares = many.quantiles("rain"), many.mean("rain"), many.proba("city")
    assert quantiles.shape == (4, 3)
    assert many.mode("city").shape == (4,)
    for k, row in enumerate(rows.to_dict("records")):
        single = model.given("count > 1", **row)
        spread = single.quantiles("rain", 0.75)[0] - single.quantiles("rain", 0.25)[0]
        assert abs(quantiles[k, 1] - single.quantiles("rain", 0.5)[0]) < 0.25 * spread
        assert abs(means[k] - single.mean("rain").estimate) < 0.25 * spread
        np.testing.assert_allclose(shares[k], list(single.proba("city").values()), atol=0.06)


def test_leading_columns_are_exact(model: NITSDensity, rows: Any) -> None:
    many = model.given_rows(rows[["size"]])
    quantiles = many.quantiles("count", [0.1, 0.9])
    assert np.isinf(quantiles.ess).all()
    for k, size in enumerate(rows["size"]):
        single = model.given(size=size)
        assert quantiles[k].tolist() == single.quantiles("count", [0.1, 0.9]).tolist()
        assert many.mean("count")[k] == pytest.approx(single.mean("count").estimate)
        assert many.proba("count")[k] == pytest.approx(list(single.proba("count").values()))


def test_a_table_may_be_given(model: NITSDensity, rows: Any) -> None:
    found = model.given(rows, city="Oslo")
    assert found.sample(1, random_state=0)["city"].tolist() == ["Oslo"] * 4
    assert np.array_equal(found.mean("rain"), model.given_rows(rows, {"city": "Oslo"}).mean("rain"))


def test_distribution_functions(model: NITSDensity, rows: Any) -> None:
    found = model.given(rows).cdf("rain", 2.0)
    for k, row in enumerate(rows.to_dict("records")):
        single = model.given(row).cdf("rain", 2.0)
        error = math.hypot(single.error, found.error[k])
        assert abs(single.estimate - found.estimate[k]) < 5 * error + 1e-4


def test_densities_of_other_columns(model: NITSDensity, rows: Any) -> None:
    other = mixed(300).dropna()[["rain", "count"]][:4].reset_index(drop=True)
    found = model.given(rows).log_prob(other)
    assert np.isfinite(found.ess).all()  # columns before the given ones are drawn
    for k, row in enumerate(rows.to_dict("records")):
        single = model.given(row).marginal(["rain", "count"]).log_prob(other[k : k + 1])
        error = math.hypot(single.error[0], found.error[k])
        assert abs(single[0] - found[k]) < 5 * error + 1e-3
    with pytest.raises(ValueError, match="a row for each of the 4 that are given, but has 3"):
        model.given(rows).log_prob(other[:3])
    with pytest.raises(ValueError, match="column 'size' is given by the table"):
        model.given(rows).log_prob(rows)


def test_a_category_given_all_else_is_exact(model: NITSDensity) -> None:
    """By Bayes' rule from the joint density of the row with each category."""
    whole = mixed(300).dropna()[:3].reset_index(drop=True)
    found = model.given(whole.drop(columns="city")).proba("city")
    assert np.isinf(found.ess).all()
    levels = list(model.given().proba("city"))
    each = np.stack([model.given().log_prob(whole.assign(city=level)) for level in levels], 1)
    joint = np.exp(each - each.max(1, keepdims=True))
    np.testing.assert_allclose(found, joint / joint.sum(1, keepdims=True), rtol=1e-4)


def test_rows_are_drawn_for_each(model: NITSDensity, rows: Any) -> None:
    drawn = model.given_rows(rows, {"city": "Oslo"}).sample(3, random_state=0)
    assert list(drawn.columns) == list(mixed(10).columns)
    assert drawn["size"].tolist() == rows["size"].repeat(3).tolist()
    assert (drawn["city"] == "Oslo").all()
    assert drawn["rain"].nunique() > 3


def test_a_context_is_read_row_by_row() -> None:
    table = mixed(200)[["city", "size", "count"]]
    model = small(context=["city"], max_steps=20).fit(table)
    rows = pandas.DataFrame({"city": ["Oslo", "Rome"]})
    found = model.given_rows(rows).mean("size")
    wanted = [model.given(city=city).mean("size").estimate for city in rows["city"]]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_what_cannot_be_asked(model: NITSDensity, rows: Any) -> None:
    many = model.given_rows(rows)
    with pytest.raises(ValueError, match="column 'size' is given by the table, so it cannot be"):
        many.mean("size")
    with pytest.raises(ValueError, match="there is no column 'town'"):
        model.given_rows(rows.assign(town=1))
    with pytest.raises(ValueError, match="column 'city' is categorical, so it has no mean"):
        many.mean("city")
    with pytest.raises(ValueError, match="must have at least one row to answer for, but has none"):
        model.given(rows[:0])
    with pytest.raises(ValueError, match="column 'size' must be given once, but is given twice"):
        model.given_rows(rows, {"size": 3})


def test_values_that_were_never_seen_are_told_of(model: NITSDensity, rows: Any) -> None:
    table = rows.assign(city=["Oslo", "Genf", "Lima", "Bern"])
    told = "2 of 4 rows give 'city' a value that was never seen in training, such as 'Genf'"
    with pytest.warns(UserWarning, match=told):
        found = model.given_rows(table).mean("rain")
    assert np.isfinite(found).all()


def test_exact_rows_are_asked_together(model: NITSDensity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn where all columns are scored, so there is room for many rows at once."""
    table, asked = mixed(300, seed=4), []
    plain = cloud.walked

    def counting(density: Any, query: Any, *rest: Any, **more: Any) -> Any:
        asked.append(query.rows)
        return plain(density, query, *rest, **more)

    monkeypatch.setattr(likelihood, "walked", counting)
    found = model.given().log_prob(table)
    assert asked == [300]
    parts = [model.given().log_prob(table[k : k + 50]) for k in range(0, 300, 50)]
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-4, atol=1e-4)
