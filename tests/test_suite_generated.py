"""The suite's generated tables: their truth, rivals where their density is known, the page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import generated_tables
import numpy as np
import pandas
import pytest
import suite_generated
import suite_page
from generated_tables import Mixed, generated
from scipy import stats
from sklearn.covariance import LedoitWolf
from suite_generated import Choice, Shrunk


@pytest.mark.parametrize(("name", "mean"), [("wide", 265.094), ("funnel", -7.5002)])
def test_the_truth_has_the_mean_of_its_closed_form(name: str, mean: float) -> None:
    truth = generated(name, test_rows=4000).truth
    assert truth.mean() == pytest.approx(mean, abs=4 * truth.std() / math.sqrt(len(truth)))


@pytest.mark.parametrize("name", ["linear", "wide"])
def test_straight_lines_have_a_gaussian_density(name: str) -> None:
    density = generated_tables.DENSITIES[name]
    assert isinstance(density, generated_tables.Linear)
    covariance = (density.factor @ density.factor.T).numpy()
    made = generated(name, test_rows=5)
    other = stats.multivariate_normal(cov=covariance, allow_singular=True).logpdf(made.test)
    assert made.truth == pytest.approx(other, abs=1e-6)


def test_the_funnel_is_a_chain_of_normals() -> None:
    made = generated("funnel", test_rows=5)
    v, rest = made.test.to_numpy()[:, :1], made.test.to_numpy()[:, 1:]
    chain = stats.norm.logpdf(v, scale=1.5) + stats.norm.logpdf(rest, scale=np.exp(v / 2)).sum(
        1, keepdims=True
    )
    assert made.truth == pytest.approx(chain.ravel())


def test_mixed_rows_have_the_product_of_their_conditionals() -> None:
    law, rows = Mixed(), Mixed().sample(200, seed=3)
    g = np.array(["abcd".index(name) for name in rows["group"]])
    hole = rows["weight"].isna().to_numpy()
    weight = rows["weight"].fillna(1.0).to_numpy()
    size, count = rows["size"].to_numpy(), rows["count"].to_numpy()
    known = np.log(1 - law.holes[g]) + stats.lognorm.logpdf(weight, 0.5, scale=np.exp(np.sin(size)))
    centre = np.where(hole, 1 + size / 10, np.log(weight) / 2)
    expected = (
        np.log(law.shares[g])
        + stats.poisson.logpmf(count, law.rates[g])
        + stats.norm.logpdf(size, np.sqrt(count) + law.shifts[g], 0.5)
        + np.where(hole, np.log(law.holes[g]), known)
        + stats.norm.logpdf(rows["value"], centre, 0.3)
    )
    assert law.log_prob(rows) == pytest.approx(expected)


@pytest.mark.parametrize("name", generated_tables.SIZES)
def test_tables_are_the_same_every_time_and_test_rows_are_others(name: str) -> None:
    one, two = generated(name, test_rows=50), generated(name, test_rows=50)
    assert one.train.equals(two.train)
    assert one.test.equals(two.test)
    assert len(one.train) == generated_tables.SIZES[name]
    assert not one.test.equals(one.train[:50].reset_index(drop=True))


@pytest.mark.parametrize("scale", [1.0, np.array([2.0, 0.5, 3.0])])
def test_a_shrunk_gaussian_has_the_density_of_its_covariance(scale: Any) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)) @ np.diag([1.0, 2.0, 3.0])
    found = LedoitWolf().fit(x * scale)
    law = stats.multivariate_normal(found.location_, found.covariance_)
    expected = law.logpdf(x * scale) + np.log(scale * np.ones(3)).sum()
    assert Shrunk(scale).fit(x).score_samples(x) == pytest.approx(expected)


def test_a_search_ends_after_two_that_are_no_better_and_keeps_the_best() -> None:
    tried = []

    class Fixed:
        def __init__(self, score: float) -> None:
            self.value = score

        def fit(self, x: Any) -> Fixed:
            return self

        def score_samples(self, x: Any) -> Any:
            tried.append(self.value)
            return np.full(len(x), self.value)

    scores = (1.0, 0.5, 3.0, 2.0, 2.5, 9.0)
    rows = np.zeros((suite_generated.FEW + 1, 1))
    best = suite_generated.searched((Choice(str(one), Fixed(one)) for one in scores), rows)
    assert (best.label, best.score) == ("3.0", 3.0)
    assert tried == [1.0, 0.5, 3.0, 2.0, 2.5]


def test_categories_and_holes_have_their_shares() -> None:
    rng = np.random.default_rng(0)
    train, test = (
        pandas.DataFrame({"g": rng.choice(["a", "b"], n, p=[0.8, 0.2]), "x": rng.normal(size=n)})
        for n in (2000, 500)
    )
    for table in (train, test):
        table["x"] += 10 * (table["g"] == "b")
        table.loc[(table["g"] == "b") & (rng.random(len(table)) < 0.5), "x"] = np.nan
    normal = -0.5 * math.log(2 * math.pi * math.e)
    truth = 0.8 * (math.log(0.8) + normal) + 0.1 * (math.log(0.1) + normal) + 0.1 * math.log(0.1)
    values, labels = suite_generated.RIVALS["gaussian"](train, test)
    assert values.mean() == pytest.approx(truth, abs=0.15)
    assert len(labels) == 2
    nothing_else = (test["g"] == "b") & test["x"].isna()
    share = ((train["g"] == "b") & train["x"].isna()).mean()
    assert values[nothing_else] == pytest.approx(math.log(share))
    # Columns apart: the group, whether x is missing, and x of two bumps.
    apart = 0.8 * math.log(0.8) + 0.2 * math.log(0.2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    bumps = 0.9 * normal + 0.8 * math.log(8 / 9) + 0.1 * math.log(1 / 9)
    values, _ = suite_generated.RIVALS["independent"](train, test)
    assert values.mean() == pytest.approx(apart + bumps, abs=0.15)


def test_a_row_of_density_zero_is_counted_and_its_block_left_out() -> None:
    values = np.arange(200.0)
    values[7] = -np.inf
    found = suite_generated.figures(values)
    assert (found["rows"], found["rows_outside"]) == (200, 1)
    assert found["nats"] == pytest.approx(values[values >= 0].mean())
    assert found["blocks"][:5] == [0.5, 2.5, 4.5, None, 8.5]
    other = suite_generated.figures(np.arange(200.0) - 1)
    assert suite_page.difference(found, other) == "+1.000 ± 0.000"


def test_a_table_runs_whole_and_the_page_has_it(tmp_path: Path) -> None:
    assert suite_generated.main(["--quick", "--only", "tiny"], tmp_path) == 0
    found = json.loads((tmp_path / "suite-generated-tiny.json").read_text())
    assert found.keys() == {"kind", "truth", *suite_generated.RIVALS, "nits"}
    ours = found["nits"]["results"]
    assert ours["out_of_fold"]["held_out"] < found["truth"]["results"]["nats"]
    page = suite_page.suite_tables(tmp_path)
    assert f"| tiny | 100 × 5 | {found['truth']['results']['nats']:.3f}".replace("-", "−") in page
    assert "Within 2 standard errors: " in page
