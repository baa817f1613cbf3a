"""What the sections of a report compute, on rows for which the answer is known."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from scipy import stats

import nits
from mixed_table import mixed, small
from nits.heads import Atoms, Categorical, Cells, Continuous, CurvedEdges, Inflated
from nits.pnn.curves import Line
from nits.report import calibration, copies, dependence, detection, likelihood, marginals, overview
from nits.report.gaussian import Gaussian
from nits.report.subject import CannotSay, Subject
from nits.tables import schema, zones
from nits.tables.conditional import Conditional
from nits.tables.estimator import NITSDensity
from report_tables import beside, fitted

ROWS = 400


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """A classifier of a few trees is enough to find what is planted here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection, "ROUNDS", 6)
        yield


@pytest.fixture(scope="module")
def model() -> NITSDensity:
    return fitted(mixed(ROWS), max_steps=60)


@pytest.fixture(scope="module")
def subject(model: NITSDensity) -> Subject:
    return Subject.of(model, mixed(ROWS))


# Calibration.


def test_transforms_of_samples_are_uniform(model: NITSDensity) -> None:
    """Atoms, integers, categories and missing values included: seven tests at 1e−6."""
    drawn = zones.read(model.sample(2000, random_state=1))
    coded = model.schema_.encode(drawn)
    u = calibration.transforms(model, coded, None, 0)
    for column in u.T:
        assert stats.kstest(column[~np.isnan(column)], "uniform").pvalue > 1e-6
    found = calibration.of_transforms(model.schema_.columns, u)
    assert found.outside == []


def test_values_beyond_the_ends_have_the_tails_probability(model: NITSDensity) -> None:
    table = mixed(4)
    ends = mixed(ROWS)["size"].agg(["min", "max"])
    table["size"] = [ends["min"] - 1, ends["max"] + 1, 50.0, 50.0]
    coded = model.schema_.encode(zones.read(table))
    u = calibration.transforms(model, coded, None, 0)
    laws = model.model_.conditionals(torch.from_numpy(coded.numbers))
    bent = Conditional(model.schema_.columns[0], laws[0]).bent()
    lower, upper, holes = bent.lower[0], bent.upper[1], bent.at[0, 0]
    assert lower > 0 < upper
    assert holes * 0.99 < u[0, 0] < holes + lower * 1.01
    assert 1 - upper * 1.01 < u[1, 0] < 1
    assert 0.05 < u[2, 0] < 0.95


def test_what_was_never_seen_has_no_transform(model: NITSDensity) -> None:
    table = mixed(4)
    table.loc[0, "city"] = "Ulm"
    u = calibration.transforms(model, model.schema_.encode(zones.read(table)), None, 0)
    assert np.isnan(u[0, 2])
    assert calibration.of_transforms(model.schema_.columns, u).left_out == 1


def test_a_zero_inflated_column_is_not_called_miscalibrated(subject: Subject) -> None:
    """Without the random point of the jump, 30 % of the entries would have the same transform."""
    found = calibration.measured(subject)
    rain = next(column for column in found.columns if column.name == "rain")
    assert rain.gap < rain.band


def test_a_wrong_column_is_named_and_out_of_its_band(model: NITSDensity) -> None:
    table = mixed(ROWS)
    table["size"] = table["size"] + 12
    found = calibration.measured(beside(model, table, table))
    assert found.worst.name == "size"
    assert "size" in found.outside
    assert any(each.outside for each in found.worst.coverage)
    assert "size" in found.uncovered


def test_the_band_holds_as_often_as_it_says() -> None:
    """A right model leaves it in at most one of twenty reports; here in three hundred."""
    source = np.random.default_rng(0)
    n, columns = 200, 5
    out = sum(
        any(
            np.abs(np.sort(u) - np.arange(1, n + 1) / n).max() > calibration.band(n, columns)
            for u in source.random((columns, n))
        )
        for _ in range(300)
    )
    assert 0 < out <= 25


def test_coverage_is_the_share_inside_central_intervals(model: NITSDensity) -> None:
    u = np.full((10, 7), 0.5)
    u[:5] = 0.05001
    found = calibration.of_transforms(model.schema_.columns, u).columns[0]
    assert [(each.level, each.share) for each in found.coverage] == [(0.5, 0.5), (0.9, 1.0)]


def test_no_transform_at_all_is_a_reason(model: NITSDensity) -> None:
    with pytest.raises(CannotSay, match="No entry of the rows"):
        calibration.of_transforms(model.schema_.columns, np.full((3, 7), np.nan))


# A classifier, and copies.


def test_a_classifier_finds_what_differs(model: NITSDensity) -> None:
    table = mixed(200)
    drawn = mixed(200, seed=1).assign(count=lambda t: t["count"] + 40)
    found = detection.measured(beside(model, table, drawn))
    assert found.auc > 0.99
    assert found.seen[0].name == "count"
    assert found.curve[0].tolist() == [0, 0]
    assert found.curve[-1].tolist() == [1, 1]


def test_a_classifier_finds_nothing_where_nothing_is(model: NITSDensity) -> None:
    found = detection.measured(beside(model, mixed(200), mixed(200, seed=1)))
    assert abs(found.auc - 0.5) < 0.12
    assert found.chance == pytest.approx(0.5 + 1.645 * (401 / (12 * 200**2)) ** 0.5)


def test_copies_are_found(model: NITSDensity) -> None:
    table = mixed(200)
    found = copies.measured(beside(model, table, table))
    assert found.drawn_same == 1.0
    assert found.real_same == 0.0
    assert found.drawn_near == 1.0 > found.high


def test_other_rows_are_no_copies(model: NITSDensity) -> None:
    found = copies.measured(beside(model, mixed(300), mixed(300, seed=1)))
    assert found.drawn_same == 0.0
    assert found.low <= found.drawn_near <= found.high
    assert found.real_near == pytest.approx(0.05, abs=0.01)


# Columns and pairs.


def test_columns_of_samples_are_compared_on_the_same_bins(subject: Subject) -> None:
    found = marginals.measured(subject)
    assert [column.name for column in found.columns] == list(mixed(2).columns)
    for column in found.columns:
        assert column.axis is not None
        assert len(column.real) == len(column.drawn) == len(column.axis)
        assert 0.98 < column.real.sum() <= 1.0000001
        assert column.drawn.sum() + column.outside == pytest.approx(1)


def test_missing_and_frequent_values_are_drawn_apart(subject: Subject) -> None:
    found = {column.name: column for column in marginals.measured(subject).columns}
    table = mixed(ROWS)
    special = {each.label: each.real for each in found["rain"].special}
    assert special == {"0": pytest.approx((table["rain"] == 0).mean())}
    special = {each.label: each.real for each in found["city"].special}
    assert special == {"missing": pytest.approx(table["city"].isna().mean())}


def test_the_gap_of_equal_columns_is_nothing_and_of_others_their_distance(
    model: NITSDensity,
) -> None:
    table = mixed(200)
    found = marginals.measured(beside(model, table, table))
    assert {column.gap for column in found.columns} == {0.0}
    drawn = table.assign(city="Rome", size=table["size"] + 1000)
    by_name = {c.name: c for c in marginals.measured(beside(model, table, drawn)).columns}
    others = 1 - (table["city"] == "Rome").mean()
    assert by_name["city"].gap == pytest.approx(others)
    assert by_name["size"].gap == pytest.approx(table["size"].notna().mean())


def test_chance_allows_more_to_many_categories() -> None:
    """Samples of the same distribution: in a few of forty columns the gap is what 5 % exceed."""
    source = np.random.default_rng(0)
    out = []
    for levels in (2, 60):
        shape = 2, 20, 300
        real, drawn = (
            zones.read({f"c{j}": x.tolist() for j, x in enumerate(part)})
            for part in source.integers(0, levels, shape).astype(str)
        )
        for column in schema.infer(real)[0].columns:
            found = marginals.marginal(
                column, real.columns[column.name], drawn.columns[column.name]
            )
            assert (0.02 if levels == 2 else 0.12) < found.chance < 0.3
            out.append(found.gap > found.chance)
    assert sum(out) <= 8


def test_quantiles_are_those_of_the_table(subject: Subject) -> None:
    found = {column.name: column for column in marginals.measured(subject).columns}
    middle = next(q for q in found["rain"].quantiles if q.level == 0.5)
    expected = np.sort(mixed(ROWS)["rain"])[200]
    assert float(middle.real) == pytest.approx(expected, rel=1e-3)


def test_mutual_information_of_known_tables() -> None:
    source = np.random.default_rng(0)
    a = source.integers(0, 4, 20_000)
    assert dependence.mutual_information(a, a) == pytest.approx(np.log(4), abs=0.01)
    assert dependence.mutual_information(a, source.integers(0, 5, 20_000)) < 1e-3
    few = [dependence.mutual_information(*source.integers(0, 6, (2, 500))) for _ in range(40)]
    assert np.mean(few) < 0.015  # 0.025 with the bias of counting
    noisy = np.where(source.random(20_000) < 0.5, a, source.integers(0, 4, 20_000))
    joint = np.full((4, 4), 0.5 / 16) + np.eye(4) * 0.125
    exact = (joint * np.log(joint * 16)).sum()
    assert dependence.mutual_information(a, noisy) == pytest.approx(exact, abs=0.02)


def test_pairs_that_tell_most_come_first(model: NITSDensity) -> None:
    table = mixed(ROWS)
    found = dependence.measured(beside(model, table, table))
    assert set(found.pairs[0].names) == {"size", "count"}
    assert np.array_equal(found.real, found.drawn)
    alone = table.assign(count=table["count"].to_numpy()[::-1])
    assert dependence.measured(beside(model, table, alone)).farthest == ("size", "count")
    for pair in found.pairs:
        assert pair.real.sum() == pytest.approx(1)
        assert pair.real.shape == tuple(len(axis) for axis in pair.axes)
    one = small().fit(table[["size"]])
    with pytest.raises(CannotSay, match="A pair needs two columns"):
        dependence.measured(beside(one, table[["size"]], table[["size"]]))


# Likelihood.


def test_a_gaussian_is_that_of_scipy() -> None:
    source = np.random.default_rng(0)
    mix = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-1.0, 0.3, 0.7]])
    x, y = (source.normal(size=(n, 3)) @ mix.T + [1, 2, 3] for n in (4000, 50))
    found = Gaussian([Continuous()] * 3).fit(x).log_prob_per_column(y).sum(1)
    exact = stats.multivariate_normal(x.mean(0), np.cov(x.T)).logpdf(y)
    np.testing.assert_allclose(found, exact, atol=0.02)


def test_a_gaussians_masses_sum_to_one() -> None:
    """Categories, and integers of which one is frequent and one stands for a hole."""
    cells = Cells(CurvedEdges(60, Line(20.0, 9.0)), (4,))
    source = np.random.default_rng(0)
    k = np.clip(np.rint(source.normal(25, 6, 2000)), 0, 59)
    k[:200], k[200:300] = 7, -1
    x = np.stack([source.integers(0, 3, 2000), k], 1).astype(np.float64)
    law = Gaussian([Categorical(3), Inflated(cells, (-1.0, 7.0))]).fit(x)
    every = np.array([(1.0, k) for k in range(-1, 60)])
    said = np.exp(law.log_prob_per_column(every))
    assert said[:, 1].sum() == pytest.approx(1, abs=2e-3)
    assert said[8, 1] == pytest.approx(0.1, abs=0.002)
    assert said[0, 0] == pytest.approx(np.mean(x[:, 0] == 1), abs=0.001)


def test_a_gaussian_with_an_atom_has_a_density_elsewhere() -> None:
    source = np.random.default_rng(0)
    x = np.where(source.random(3000) < 0.25, 0.5, source.normal(0, 2, 3000))[:, None]
    law = Gaussian([Atoms((0.5,), -50.0, 50.0)]).fit(x)
    grid = np.linspace(-20, 20, 4001)[:, None]
    density = np.exp(law.log_prob_per_column(grid))[:, 0]
    density[np.isclose(grid[:, 0], 0.5)] = 0
    assert density.sum() * 0.01 == pytest.approx(0.75, abs=0.02)
    assert np.exp(law.log_prob_per_column(np.array([[0.5]])))[0, 0] == pytest.approx(0.25, abs=0.02)


def test_simple_models_score_rows_that_they_did_not_learn_from(subject: Subject) -> None:
    found = likelihood.measured(subject)
    assert found.gaussian is not None
    assert found.independent is not None
    assert found.ahead_of_gaussian is not None
    ahead = found.model.mean - found.gaussian.mean
    assert found.ahead_of_gaussian.mean == pytest.approx(ahead, abs=1e-9)
    assert found.ahead_of_independent is not None
    gains = sum(column.gain for column in found.columns if column.gain is not None)
    assert found.ahead_of_independent.mean == pytest.approx(gains, abs=1e-6)
    of_columns = sum(column.independent.mean for column in found.columns if column.independent)
    assert of_columns == pytest.approx(found.independent.mean, abs=1e-6)


def test_independent_columns_have_the_entropies_of_their_columns() -> None:
    source = np.random.default_rng(0)
    table = pandas.DataFrame({"x": source.normal(3, 2, 600), "k": source.choice(["a", "b"], 600)})
    table["y"] = table["x"] + source.normal(0, 0.1, 600)
    found = likelihood.measured(Subject.of(fitted(table), table))
    assert found.independent is not None
    assert found.gaussian is not None
    wide, narrow = stats.norm(0, 2).entropy(), stats.norm(0, 0.1).entropy()
    assert found.independent.mean == pytest.approx(-2 * wide - np.log(2), abs=0.4)
    assert found.gaussian.mean == pytest.approx(-wide - narrow - np.log(2), abs=0.15)


# What a report must live through.


def test_a_file_of_an_older_version_has_a_report() -> None:
    from pathlib import Path

    old = nits.load(Path(__file__).parent / "data" / "golden-1.nits")
    found = old.report(old.sample(60, random_state=0))
    assert set(found.reasons) <= {"training"}
    assert "likelihood" in found.sections


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "numpy"])
def test_every_form_of_table_has_a_report(form: str) -> None:
    import polars
    import pyarrow

    table = mixed(60)[["size", "count"]]
    forms: dict[str, Any] = {
        "pandas": lambda: table,
        "polars": lambda: polars.from_pandas(table),
        "arrow": lambda: pyarrow.Table.from_pandas(table),
        "numpy": lambda: table.to_numpy(),
    }
    given = forms[form]()
    assert "overview" in fitted(given).report(given[:30] if form != "arrow" else given).sections


def test_columns_with_little_in_them_have_a_report() -> None:
    """Constant, empty, nearly constant, durations, ordered categories, one value and holes."""
    n = 60
    source = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "constant": 1,
            "empty": np.nan,
            "hole or 3": np.where(source.random(n) < 0.5, np.nan, 3.0),
            "two": source.integers(0, 2, n),
            "wait": pandas.to_timedelta(source.gamma(2, 3000, n), unit="s"),
            "grade": pandas.Categorical(
                source.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
            "x": source.normal(size=n),
        }
    )
    with pytest.warns(UserWarning, match="set aside: 'constant'"):
        model = fitted(table)
    found = model.report(table[:39])
    kinds = {taken.name: taken.kind for taken in found.sections["overview"].columns}
    assert kinds["constant"] == kinds["empty"] == "set aside"
    grade = {c.name: c for c in found.sections["marginals"].columns}["grade"]
    assert grade.axis is not None
    assert [tick.label for tick in grade.axis.ticks] == ["low", "mid", "high"]


def test_columns_that_the_model_does_not_know_are_named(model: NITSDensity) -> None:
    table = mixed(50).assign(extra=1)
    assert overview.measured(beside(model, table, table)).extra == ("extra",)
