"""NITSDensity: scikit-learn's contract, tables of mixed columns, conditional densities."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.tables import orders
from nits.tables.validate import checked_frame
from nits.training.rows import parted

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "a weight of two and a row twice are shuffled "
    "differently, so the same optimum is approached along another path",
}
"""scikit-learn's checks that cannot hold, and why."""

BY_LUCK = {
    "check_methods_subset_invariance": "scores are float32: matrix products of one row and of many "
    "round the last digit differently, by 5e-7 here where 1e-7 is asked",
}
"""Those that hold on some machines only."""


@pytest.mark.filterwarnings("ignore:y is not modelled")  # the checks pass one
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [NITSDensity(max_steps=3, hidden=16, blocks=1)], expected_failed_checks=lambda e: EXPECTED
)
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    if check.func.__name__ in BY_LUCK:
        pytest.skip(BY_LUCK[check.func.__name__])
    check(estimator)


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed()


@pytest.fixture(scope="module")
def fitted(table: Any) -> NITSDensity:
    return small().fit(table)


def test_scores_are_finite_and_add_up(fitted: NITSDensity, table: Any) -> None:
    whole, shares = fitted.score_samples(table), fitted.score_samples(table, per_column=True)
    assert whole.shape == (400,)
    assert shares.shape == (400, 7)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(shares.sum(1), whole)
    assert fitted.score(table) == pytest.approx(whole.mean())


def test_missing_values_have_a_probability(fitted: NITSDensity, table: Any) -> None:
    """That of the first column is the same in all rows: about the share of missing values."""
    shares = np.exp(fitted.score_samples(table, per_column=True))
    holes = shares[table["size"].isna(), 0]
    assert holes == pytest.approx(np.full(len(holes), holes[0]), rel=1e-5)
    assert holes[0] == pytest.approx(table["size"].isna().mean(), rel=0.3)
    assert (
        (shares[table["city"].isna(), 2] > 0.01) & (shares[table["city"].isna(), 2] < 0.5)
    ).all()


def test_densities_are_in_the_tables_units() -> None:
    """Metres or millimetres: the density differs by the factor, and nothing else does."""
    metres = np.random.default_rng(0).normal(2, 0.5, (300, 1))
    a, b = small().fit(metres), small().fit(1000 * metres)
    np.testing.assert_allclose(
        a.score_samples(metres), b.score_samples(1000 * metres) + math.log(1000), atol=1e-3
    )
    assert a.held_out_ is not None
    assert b.held_out_ is not None
    assert a.held_out_ == pytest.approx(b.held_out_ + math.log(1000), abs=1e-3)
    assert a.held_out_ == pytest.approx(a.score(metres), abs=0.3)


def test_a_density_integrates_to_one_less_the_unseen() -> None:
    x = np.random.default_rng(0).gamma(2.0, 30.0, (500, 1))
    model = small(support={"x0": (0.0, math.inf)}).fit(x)
    grid = (np.arange(40000) + 0.5) / 20
    assert np.exp(model.score_samples(grid[:, None])).sum() / 20 == pytest.approx(
        1 - 1 / 502, abs=1e-4
    )
    assert model.score_samples([[-1.0]])[0] == -np.inf


def test_probabilities_of_discrete_columns_sum_to_one_less_the_unseen() -> None:
    frame = pandas.DataFrame({"k": np.random.default_rng(0).poisson(3, 300)})
    model = small(support={"k": (0, math.inf)}).fit(frame)
    values = pandas.DataFrame({"k": np.arange(2000)})
    assert np.exp(model.score_samples(values)).sum() == pytest.approx(1 - 1 / 302, abs=1e-5)


def test_samples_are_such_a_table(fitted: NITSDensity, table: Any) -> None:
    drawn = fitted.sample(500, random_state=1)
    assert list(drawn.columns) == list(table.columns)
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    assert set(drawn["city"].dropna()) == {"Lima", "Oslo", "Rome"}
    assert (drawn["price"] == drawn["price"].round(1)).all()
    assert 0.1 < (drawn["rain"] == 0).mean() < 0.5
    holes = drawn.isna().mean()
    assert (holes[["size", "city"]] > 0.03).all()
    assert (holes[["size", "city"]] < 0.25).all()
    assert (holes.drop(["size", "city"]) == 0).all()
    assert np.isfinite(fitted.score_samples(drawn)).all()
    pandas.testing.assert_frame_equal(drawn, fitted.sample(500, random_state=1))
    assert not drawn.equals(fitted.sample(500, random_state=2))


def test_complete_samples_have_no_holes(fitted: NITSDensity, table: Any) -> None:
    drawn = fitted.sample(500, random_state=1, complete=True)
    assert drawn.notna().all().all()
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()


def test_columns_are_found_by_name(fitted: NITSDensity, table: Any) -> None:
    """In any order, among others, and of another type."""
    expected = fitted.score_samples(table)
    turned = table[table.columns[::-1]].assign(extra=1)
    assert np.array_equal(fitted.score_samples(turned), expected)
    retyped = table.assign(
        count=table["count"].astype("float32"),
        member=table["member"].astype("boolean"),
        city=table["city"].astype("category"),
    )
    assert np.array_equal(fitted.score_samples(retyped), expected)
    with pytest.raises(ValueError, match="the table must have the column 'rain', but has size, "):
        fitted.score_samples(table.drop(columns="rain"))


def test_what_was_never_seen_is_finite_and_counted(fitted: NITSDensity, table: Any) -> None:
    assert not fitted.unseen(table).any()
    odd = table[:4].copy()
    odd.loc[0, "city"] = "Paris"
    odd.loc[1, "rain"] = np.nan
    odd.loc[2, "price"] = 3.14159
    assert np.isfinite(fitted.score_samples(odd)).all()
    rows, columns = np.nonzero(fitted.unseen(odd))
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 2), (1, 4), (2, 6)]
    shares = fitted.score_samples(odd, per_column=True)
    assert np.allclose(shares[rows, columns], -math.log(402 * len(fitted.schema_.columns)))


def test_columns_go_by_name_or_position(table: Any) -> None:
    options: dict[str, Any] = {"kinds": {"count": "ordered"}, "support": {"rain": (0.0, math.inf)}}
    named = small(**options, context=["city"]).fit(table)
    placed = small(kinds={1: "ordered"}, support={4: (0.0, math.inf)}, context=[2]).fit(table)
    assert named.schema_.columns == placed.schema_.columns
    assert named.context_schema_.columns == placed.context_schema_.columns
    assert np.array_equal(named.score_samples(table), placed.score_samples(table))


def test_leading_columns_can_be_given(fitted: NITSDensity) -> None:
    drawn = fitted.sample(50, random_state=0, given={"size": 40.1, "count": 4})
    assert (drawn["size"] == 40.1).all()
    assert (drawn["count"] == 4).all()
    assert drawn["rain"].nunique() > 10
    with pytest.raises(ValueError, match="there is no column 'town' among size, count"):
        fitted.sample(5, given={"town": "Oslo"})


def test_a_greedy_order_is_kept_in_the_file(table: Any, tmp_path: Path) -> None:
    model = small(order="greedy").fit(table)
    order = model.model_.order.tolist()
    numbers = model.schema_.encode(checked_frame(model, table, reset=False)).numbers
    assert order == orders.greedy(numbers) != list(range(7))
    model.save(tmp_path / "m.nits")
    loaded = nits.load(tmp_path / "m.nits")
    assert loaded.model_.order.tolist() == order
    np.testing.assert_array_equal(loaded.score_samples(table), model.score_samples(table))


def test_the_order_can_be_chosen(table: Any) -> None:
    order = ["city", "size", "count", "member", "rain", "seen", "price"]
    drawn = small(order=order).fit(table).sample(20, random_state=0, given={"city": "Oslo"})
    assert (drawn["city"] == "Oslo").all()
    assert list(drawn.columns) == list(table.columns)


def test_the_seed_decides(table: Any) -> None:
    a, b, other = (small(random_state=seed).fit(table).score(table) for seed in (1, 1, 2))
    assert a == b
    assert a != other


def test_a_conditional_density(table: Any) -> None:
    table = table[["city", "size", "member", "count"]]
    model = small(context=["city", "size", "member"], max_steps=60).fit(table)
    shares = model.score_samples(table)
    assert shares.shape == (400,)
    drawn = model.sample(3, random_state=0, given=table[["city", "size", "member"]][:5])
    assert len(drawn) == 15
    assert list(drawn.columns) == ["count"]
    quantiles = model.predict_quantiles(table[:20], [0.05, 0.5, 0.95])
    assert quantiles.shape == (20, 3)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    mean = model.predict_mean(table[:20])
    assert ((mean > quantiles[:, 0]) & (mean < quantiles[:, 2])).all()
    below = model.cdf(table[:20])
    assert ((below > 0) & (below < 1)).all()
    at_median = model.cdf(table[:20].assign(count=quantiles[:, 1]))
    assert (at_median >= 0.5 - 1e-4).all()
    with pytest.raises(
        ValueError, match="this model needs the columns city, size, member; pass a table"
    ):
        model.sample(3)


def test_the_mean_is_the_mean_of_the_density_and_not_its_median() -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"size": rng.random(800)})
    frame["cost"] = rng.gamma(0.5, 10 + 50 * frame["size"])
    model = small(context=["size"], support={"cost": (0.0, math.inf)}, max_steps=60).fit(frame)
    ask = pandas.DataFrame({"size": [0.2, 0.9], "cost": 0.0})
    edges = np.geomspace(1e-12, 1e6, 8001)
    grid = np.sqrt(edges[1:] * edges[:-1])
    for at, mean, median in zip(
        ask["size"], model.predict_mean(ask), model.predict_quantiles(ask, [0.5])[:, 0], strict=True
    ):
        rows = pandas.DataFrame({"size": at, "cost": grid})
        mass = np.exp(model.score_samples(rows)) * np.diff(edges)
        assert mass.sum() == pytest.approx(1 - model.schema_.columns[0].unseen, abs=1e-4)
        assert mean == pytest.approx((mass * grid).sum(), rel=0.03)
        assert mean > 1.5 * median


@pytest.mark.parametrize("name", ["size", "count", "rain", "seen", "price"])
def test_quantiles_and_cdf_undo_each_other(table: Any, name: str) -> None:
    """Whatever the column is; far in the tails, too, and holes have no place."""
    table = table[[name]].assign(given=np.arange(400.0) % 17)
    model = small(context=["given"]).fit(table)
    levels = [0.0002, 0.01, 0.3, 0.5, 0.9, 0.9998]
    quantiles = model.predict_quantiles(table[:3], levels)
    assert (quantiles[:, 1:] >= quantiles[:, :-1]).all()
    for level, values in zip(levels, quantiles.T, strict=True):
        at = model.cdf(table[:3].assign(**{name: values}))
        assert (at >= level - 1e-5).all()
        if name in ("size", "seen"):
            assert at == pytest.approx(np.full(3, level), abs=1e-4)
    mean = model.predict_mean(table[:3])
    assert ((mean > quantiles[:, 1]) & (mean < quantiles[:, 4])).all()
    assert mean.dtype == (quantiles.dtype if name == "seen" else np.float64)
    assert np.array_equal(np.isnan(model.cdf(table)), table[name].isna())


def test_categories_have_no_mean() -> None:
    levels = ["low", "mid", "high"]
    rng = np.random.default_rng(0)
    for ordered in (False, True):
        grade = pandas.Categorical(rng.choice(levels, 100), levels, ordered=ordered)
        table = pandas.DataFrame({"grade": grade, "x": rng.normal(size=100)})
        model = small(context=["x"], max_steps=2).fit(table)
        with pytest.raises(ValueError, match="column 'grade' is categorical, so it has no mean"):
            model.predict_mean(table)


def test_one_column_must_be_modelled_for_quantiles(fitted: NITSDensity, table: Any) -> None:
    with pytest.raises(
        ValueError, match="one column must be modelled for this, but 7 are; name the others in"
    ):
        fitted.predict_quantiles(table)


def test_it_learns() -> None:
    """Two columns that go together: the joint density is worth more than the marginals."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    both = np.hstack([x, x + 0.1 * rng.normal(size=(2000, 1))])
    score = NITSDensity(max_steps=700, random_state=0).fit(both[:1500]).score(both[1500:])
    exact = -math.log(2 * math.pi * math.e) + math.log(10)
    assert exact - 0.15 < score < exact + 0.1


def test_whitening_finds_columns_that_nearly_determine_one_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(600, 4)) * (5.0, 0.1, 0.1, 0.1), 1) + 7
    plain, white = (
        NITSDensity(max_steps=60, random_state=0, whiten=w).fit(x[:500]) for w in (False, True)
    )
    for model in (white, plain):  # a network follows straight lines without whitening, too
        assert model.score(x[500:]) > -0.6
    white.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert np.array_equal(again.score_samples(x), white.score_samples(x))
    assert np.corrcoef(again.sample(300, random_state=0).T)[0, 3] > 0.99
    with pytest.raises(
        ValueError, match="must be real ones without limits, atoms or missing values"
    ):
        NITSDensity(whiten=True, support={"x0": (0.0, 99.0)}).fit(x)


def test_weights_of_rows_matter() -> None:
    x = np.concatenate([np.full(200, -2.0), np.full(200, 2.0)])[:, None]
    x = x + np.random.default_rng(0).normal(size=x.shape) * 0.3
    weight = np.repeat([1.0, 0.01], 200)
    model = small(max_steps=150).fit(x, sample_weight=weight)
    drawn = model.sample(1000, random_state=0)
    assert (drawn < 0).mean() > 0.9


def streets(rows: int = 300) -> Any:
    """A gamma in thousands with zeros among it, and names of which half are rare."""
    rng = np.random.default_rng(1)
    rain = np.where(rng.random(rows) < 0.3, 0.0, rng.gamma(2.0, 3000.0, rows))
    common, rare = rng.choice(["A", "B"], rows), [f"r{k % 40}" for k in range(rows)]
    return pandas.DataFrame(
        {"rain": rain, "street": np.where(rng.random(rows) < 0.5, common, rare)}
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pool_below", [0, 20])
def test_the_held_out_figure_is_the_score_of_those_rows(weighted: bool, pool_below: int) -> None:
    table = streets()
    table.loc[table["rain"].nlargest(2).index, "rain"] = table["rain"].max()  # no lone extreme
    weight = np.where(table["rain"] == 0, 9.0, 0.5) if weighted else None
    model = small(pool_below=pool_below, validation_fraction=0.3).fit(table, sample_weight=weight)
    _, at = parted(len(table), 0.3, int(check_random_state(0).randint(2**31 - 1)))
    scores = model.score_samples(table.iloc[at.numpy()])
    expected = np.average(scores, weights=None if weight is None else weight[at.numpy()])
    assert model.held_out_ == pytest.approx(expected, abs=1e-4)


def test_rows_outside_the_support_are_refused_by_name() -> None:
    table = np.random.default_rng(0).normal(100, 20, (300, 1))
    with pytest.raises(
        ValueError,
        match=r"column 'x0': the values must lie in the support \[60, 110\], but go from",
    ):
        small(support={"x0": (60, 110)}).fit(table)


def test_without_held_out_rows_there_is_no_figure() -> None:
    assert small(validation_fraction=0.0).fit(streets()).held_out_ is None


def test_it_goes_through_scikit_learns_tools() -> None:
    x = np.random.default_rng(0).normal(size=(120, 2))
    assert len(cross_val_score(small(max_steps=5), x, cv=3)) == 3
    search = GridSearchCV(small(max_steps=5), {"hidden": [8, 16]}, cv=2).fit(x)
    assert search.best_params_["hidden"] in (8, 16)
    pipeline = make_pipeline(StandardScaler(), small(max_steps=5)).fit(x)
    assert np.isfinite(pipeline.score(x))
    assert clone(small(hidden=9)).hidden == 9


def test_defaults_follow_the_size_of_the_table() -> None:
    from nits.tables.defaults import plan

    sizes = [plan(rows, 10) for rows in (100, 5_000, 50_000, 500_000, 5_000_000)]
    assert [s.hidden for s in sizes] == sorted(s.hidden for s in sizes)
    assert [s.batch_size for s in sizes] == sorted(s.batch_size for s in sizes)
    assert plan(100, 200).hidden >= 200
    few, enough, many = (plan(rows, 10) for rows in (19_999, 20_000, 100_000))
    optimizers = [nits.AdamW(), nits.AdamW(), nits.ScheduleFree()]
    assert [p.optimizer for p in (few, enough, many)] == optimizers
    assert [p.learning_rate for p in (few, enough, many)] == [5e-3, 4e-3, 6e-3]


def test_a_large_table_is_learned_without_a_schedule() -> None:
    x = np.random.default_rng(0).normal(size=(100_000, 1))
    model = NITSDensity(max_steps=120, hidden=8, blocks=1, random_state=0).fit(x)
    assert model.history_["learning_rate"][-1] == 6e-3
    assert (
        NITSDensity(max_steps=120, hidden=8, blocks=1, random_state=0)
        .fit(x[:9000])
        .history_["learning_rate"][-1]
        < 5e-4
    )


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            np.ones(3),
            "sample_weight must have shape (10,), one weight per row, but has (3,).",
        ),
        (
            -np.ones(10),
            "sample_weight must be finite, not negative, and not zero in all rows.",
        ),
        (
            np.zeros(10),
            "sample_weight must be finite, not negative, and not zero in all rows.",
        ),
    ],
)
def test_wrong_weights(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        small().fit(np.random.default_rng(0).normal(size=(10, 2)), sample_weight=weight)


@pytest.mark.parametrize("name", ["narrow", "skewed", "counts", "spikes", "wide"])
def test_the_mean_is_that_of_many_quantiles(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(400)
    y = {
        "narrow": 1000 * x + 0.01 * rng.normal(size=400),
        "skewed": np.exp(3 * x + rng.normal(size=400)),
        "counts": rng.poisson(5 + 20 * x),
        "spikes": np.where(rng.random(400) < 0.5, 0.0, rng.gamma(2, 5 + 10 * x)),
        "wide": (1e5 * x + 300 * rng.normal(size=400)).astype(int),
    }[name]
    table = pandas.DataFrame({"x": x, "y": y})
    model = small(context=["x"], max_steps=30).fit(table)
    levels = (np.arange(4000) + 0.5) / 4000
    expected = model.predict_quantiles(table[:5], levels).astype(np.float64).mean(1)
    np.testing.assert_allclose(model.predict_mean(table[:5]), expected, rtol=0.02)


def test_levels_are_probabilities_in_any_form(table: Any) -> None:
    table = table[["size", "count"]].dropna()
    model = small(context=["size"]).fit(table)
    two = model.predict_quantiles(table[:4], np.array([0.25, 0.5]))
    assert (model.predict_quantiles(table[:4], 0.5)[:, 0] == two[:, 1]).all()
    with pytest.raises(ValueError, match=re.escape("levels must lie in [0, 1], but 50 is among")):
        model.predict_quantiles(table, [50, 95])


def test_rows_of_weight_zero_are_as_if_they_were_not_there() -> None:
    table = np.random.default_rng(0).normal(size=(80, 2))
    more = np.concatenate([table, np.full((400, 2), 1e6)])
    weight = np.concatenate([np.ones(80), np.zeros(400)])
    model = small(max_steps=5).fit(more, sample_weight=weight)
    alone = small(max_steps=5).fit(table, sample_weight=np.ones(80))
    assert np.array_equal(model.score_samples(table), alone.score_samples(table))
    assert model.held_out_ == alone.held_out_
