"""Outlier scores: exact on toy laws, uniform on samples, free of units, and for odd entries."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from scipy import stats
from torch.distributions import Categorical as Shares
from torch.distributions import MixtureSameFamily, Normal

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.cli.main import main
from nits.heads import Categorical, Continuous
from nits.tables import frames, surprise
from nits.tables.columns import build
from nits.tables.columns.column import Column


def surprises(column: Column, law: Any, values: Any) -> Any:
    """−log p of values under a law of the column's numbers, the same for all rows."""
    seen = frames.plain(np.asarray(values))
    return -surprise.log_surprise(column, law, column.encode(seen), seen)


def real(rows: int = 4000) -> Any:
    return build.column(
        "x", frames.plain(np.random.default_rng(0).normal(50, 10, rows)), "continuous"
    )


@pytest.mark.parametrize("modes", [(0.0,), (-1.2, 1.1)])
def test_real_values_have_the_mass_of_less_dense_ones(modes: tuple[float, ...]) -> None:
    """Against the mass of a fine grid where the density is at most as great."""
    column, spread = real(), 0.4
    values = np.linspace(30, 70, 41)
    numbers = column.encode(frames.plain(values)).numbers
    each = Normal(torch.tensor(modes), torch.full((len(modes),), spread))
    law = MixtureSameFamily(Shares(torch.ones(len(modes))), each).expand([len(values)])
    fine = torch.linspace(-8, 8, 40001, dtype=torch.float64)
    whole = MixtureSameFamily(Shares(torch.ones(len(modes))), each)
    density = whole.log_prob(fine.float()).double().exp().numpy()
    own = whole.log_prob(torch.from_numpy(numbers).float()).double().exp().numpy()
    mass = np.array([density[density <= level].sum() for level in own]) * 16 / 40000
    found = np.exp(-surprises(column, law, values))
    at = mass < 0.8  # next to a mode the points are too coarse, and nothing is surprising
    np.testing.assert_allclose(found[at], mass[at], rtol=0.08, atol=1e-3)
    assert (found[~at] > 0.75).all()


def test_far_values_are_ever_more_surprising() -> None:
    """Beyond the training values the tail's law decides; a row of n + 1 is about −log(2/n)."""
    column = real(1000)
    law = Normal(torch.zeros(5), torch.ones(5))
    found = surprises(column, law, [50.0, 90.0, 120.0, 200.0, -100.0])
    assert found[0] < 0.1
    assert (np.diff(found[:4]) > 0).all()
    assert 5 < found[1] < 15
    assert np.isfinite(found).all()


def test_categories_have_the_sum_of_rarer_ones() -> None:
    names = np.array(["a"] * 70 + ["b"] * 20 + ["c"] * 10, object)
    column = build.column("k", frames.plain(names))
    theta = torch.log(torch.tensor([0.7, 0.2, 0.1])).expand(4, -1)
    law = Categorical(3).distribution(theta, -0.5, 2.5)
    found = surprises(column, law, np.array(["a", "b", "c", "never"], object))
    left = 1 - 1 / 102
    expected = [left * 1.0, left * 0.3, left * 0.1, 1 / 102]
    np.testing.assert_allclose(np.exp(-found), expected, rtol=1e-4)


def test_ties_are_at_most_as_likely_as_one_another() -> None:
    column = build.column("k", frames.plain(np.array(["a", "b"] * 50, object)))
    law = Categorical(2).distribution(torch.zeros(2, 2), -0.5, 1.5)
    np.testing.assert_allclose(
        np.exp(-surprises(column, law, np.array(["a", "b"], object))), 101 / 102, rtol=1e-4
    )


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed()


@pytest.fixture(scope="module")
def fitted(table: Any) -> NITSDensity:
    return small().fit(table)


def test_a_rows_score_is_the_sum_of_its_entries(fitted: NITSDensity, table: Any) -> None:
    each = fitted.outlier_scores(table, per_column=True)
    assert each.shape == (400, 7)
    assert (each >= 0).all()
    np.testing.assert_allclose(fitted.outlier_scores(table), each.sum(1))
    np.testing.assert_allclose(
        fitted.outlier_scores(table[5:6], per_column=True), each[5:6], rtol=1e-3, atol=1e-4
    )


def test_p_is_uniform_for_rows_of_the_model(fitted: NITSDensity) -> None:
    """For real columns; for others it is no more often small. False alarms at 1e-4 per column."""
    drawn = fitted.sample(1000, random_state=0)
    p = np.exp(-fitted.outlier_scores(drawn, per_column=True))
    slack = stats.kstwo(1000).ppf(1 - 1e-4)
    for i, column in enumerate(fitted.schema_.columns):
        if column.kind == "continuous" and (column.optional or column.name == "rain"):
            continue  # asked twice: which part, and where in it
        grid = np.linspace(0.01, 1, 100)
        share = np.searchsorted(np.sort(p[:, i]), grid * (1 + 1e-6), side="right") / 1000
        assert (share - grid).max() < slack + 0.02, column.name
        if column.kind == "continuous":
            assert np.abs(share - grid).max() < slack + 0.02, column.name


def test_scores_have_no_unit(table: Any) -> None:
    """Metres or millimetres, also where the model learns anew, and the densities are others."""
    numbers = table[["size", "rain", "price"]]
    factors = {"size": 1e3, "rain": 1e-3, "price": 1.0}
    other = numbers * pandas.Series(factors)
    a, b = small(max_steps=5).fit(numbers), small(max_steps=5).fit(other)
    one, two = a.outlier_scores(numbers, True), b.outlier_scores(other, True)
    np.testing.assert_allclose(one, two, atol=0.02, rtol=0.02)
    assert np.abs(a.score_samples(numbers, True) - b.score_samples(other, True)).max() > 5


def test_odd_entries_stand_out(fitted: NITSDensity, table: Any) -> None:
    odd = pandas.concat([table[1:2]] * 6, ignore_index=True)
    odd.loc[1, "size"] = 1000.0
    odd.loc[2, "city"] = "Paris"
    odd.loc[3, "count"] = 10**6
    odd.loc[4, "rain"] = np.nan
    odd.loc[5, "size"] = np.nan
    found = fitted.outlier_scores(odd, per_column=True)
    assert np.isfinite(found).all()
    for row, column in ((1, 0), (2, 2), (3, 1), (4, 4)):
        assert found[row].argmax() == column
        assert found[row, column] > math.log(400) - 1
    share = table["size"].isna().mean()  # holes are rarer than values
    assert found[5, 0] == pytest.approx(-math.log(share), abs=0.3)


def test_atoms_and_other_values_are_not_compared() -> None:
    """Zeros are three in ten: that is their surprise, however dense the other values are."""
    rng = np.random.default_rng(0)
    rain = np.where(rng.random(600) < 0.3, 0.0, rng.gamma(2.0, 3.0, 600))[:, None]
    for factor in (1.0, 1e-3):
        model = small().fit(rain * factor)
        zero, usual, much = model.outlier_scores(np.array([[0.0], [4.0], [60.0]]) * factor)
        assert zero == pytest.approx(-math.log((rain == 0).mean()), abs=0.15)
        assert usual < 0.5
        assert much > 5


def test_what_support_rules_out_is_infinitely_surprising() -> None:
    x = np.random.default_rng(0).gamma(2.0, 30.0, (200, 1))
    model = small(support={"x0": (0.0, math.inf)}).fit(x)
    assert model.outlier_scores([[-1.0]])[0] == math.inf


def test_members_of_a_mixture_are_one_law(table: Any) -> None:
    """The mixture of a model with itself is that model."""
    numbers = table[["size", "rain", "count"]]
    model = small(max_steps=5).fit(numbers)
    alone = model.outlier_scores(numbers, per_column=True)
    model.model_ = nits.Mixture([model.model_, model.model_])
    both = model.outlier_scores(numbers, per_column=True)
    np.testing.assert_allclose(both, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("guess", [False, True])
def test_wide_tables_of_several_kinds_have_conditionals(guess: bool) -> None:
    """Their last layer has few codes per column, and PNNs of several sizes side by side."""
    heads = [Continuous(hidden=(4,)), Categorical(3), Categorical(3)] * 4
    net = nits.NITS.mlp(heads, hidden=12, blocks=1, codes=5, guess=guess, generator=0).eval()
    x = torch.randint(0, 3, (6, 12), generator=torch.Generator().manual_seed(0)).float()
    with torch.no_grad():
        each = [law.log_prob(x[:, i]) for i, law in enumerate(net.conditionals(x))]
        torch.testing.assert_close(torch.stack(each, 1), net.log_prob_per_column(x))


def test_columns_that_are_given_have_no_surprise(table: Any) -> None:
    model = small(context=["city", "size"], max_steps=5).fit(table[["city", "size", "rain"]])
    assert model.outlier_scores(table, per_column=True).shape == (400, 1)


def test_the_command_line_names_what_is_odd(
    fitted: NITSDensity, table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = table.copy()
    odd.loc[7, "size"] = 1000.0
    odd.to_csv(tmp_path / "table.csv", index=False)
    fitted.save(tmp_path / "model.nits")
    argv = ["outliers", str(tmp_path / "model.nits"), str(tmp_path / "table.csv"), "--quiet"]
    assert main([*argv, "--top", "3"]) == 0
    found = pandas.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(found.columns) == ["row", "outlier_score", "most_surprising"]
    assert len(found) == 3
    assert found["row"][0] == 7
    assert found["most_surprising"][0].startswith("size=1000.0 (")
    assert found["outlier_score"].is_monotonic_decreasing
    output = tmp_path / "scores.parquet"
    assert main([*argv, "--per-column", "-o", str(output)]) == 0
    every = pandas.read_parquet(output)
    np.testing.assert_allclose(every["outlier_score"], fitted.outlier_scores(odd), rtol=1e-4)
    np.testing.assert_allclose(every.filter(like="surprise_").sum(axis=1), every["outlier_score"])
