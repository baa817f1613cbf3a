"""Outlier scores by blurred rows: near the mean of a kernel, free of units, and for odd entries."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.cli.main import main
from nits.heads import Categorical, Continuous
from nits.model.blurred import Blurred
from nits.tables import blurred
from nits.tables.blurred import WIDTH, Place


def pair() -> Blurred:
    density = nits.NITS.mlp([Continuous(hidden=(4,)), Categorical(3)], hidden=8, generator=0)
    return Blurred(density, [0.5, 0.1])


def test_rows_are_blurred_by_the_seed_and_only_then() -> None:
    model, x = pair(), torch.zeros(4000, 2)
    x[:, 1] = torch.arange(4000) % 3
    assert model.noisy(x) is x
    model.reseed(3)
    y = model.noisy(x)
    model.reseed(3)
    assert torch.equal(model.noisy(x), y)
    assert float(y[:, 0].std()) == pytest.approx(0.5, rel=0.05)
    assert float((y[:, 1] != x[:, 1]).float().mean()) == pytest.approx(0.1 * 2 / 3, abs=0.015)
    model.reseed(None)
    assert model.noisy(x) is x


def test_each_column_has_a_width() -> None:
    with pytest.raises(ValueError, match="widths must be 2, one for each column, but are 1"):
        Blurred(pair().density, [0.5])


def test_holes_stay_holes() -> None:
    heads = [Continuous(hidden=(4,), optional=True), Categorical(2)]
    model = Blurred(nits.NITS.mlp(heads, hidden=8, generator=0), [0.5, 0.1])
    model.reseed(0)
    x = torch.tensor([[torch.nan, 1.0], [0.5, 0.0]])
    assert torch.isnan(model.noisy(x)[:, 0]).tolist() == [True, False]


@pytest.fixture(scope="module")
def cloud() -> Any:
    rng = np.random.default_rng(0)
    x = np.where(rng.random(400) < 0.5, -1.0, 1.0) + 0.2 * rng.normal(size=400)
    return pandas.DataFrame({"x": 30 * x, "y": 1e-3 * (x**2 + 0.2 * rng.normal(size=400))})


@pytest.fixture(scope="module")
def learned(cloud: Any) -> NITSDensity:
    return small(max_steps=500, outliers=True).fit(cloud)


def test_a_score_is_the_share_of_rows_that_are_alike(learned: NITSDensity, cloud: Any) -> None:
    """Against the mean of the kernel over the training rows, which the network has not kept."""
    rng = np.random.default_rng(1)
    middle, spread = cloud.mean(), cloud.std(ddof=0)
    z = rng.uniform(-2.5, 2.5, (300, 2))
    rows = ((cloud - middle) / spread).to_numpy()
    away = ((z[:, None] - rows) / WIDTH) ** 2
    kernel = -np.log(np.exp(-0.5 * away.sum(2)).mean(1))
    table = pandas.DataFrame(z * spread.to_numpy() + middle.to_numpy(), columns=["x", "y"])
    found = learned.outlier_scores(table)
    near = kernel < 5
    assert np.abs(found - kernel)[near].mean() < 0.25
    assert np.corrcoef(found, kernel)[0, 1] > 0.95


def test_scores_are_the_same_in_other_units(cloud: Any) -> None:
    other = cloud * [1e3, 1e-3]
    one, two = (
        small(max_steps=60, outliers=True).fit(rows).outlier_scores(rows, per_column=True)
        for rows in (cloud, other)
    )
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)


def test_far_rows_are_ever_farther_out(learned: NITSDensity) -> None:
    away = [0.0, 200.0, 1e3, 1e6, 1e30, 1e300]
    found = learned.outlier_scores(pandas.DataFrame({"x": away, "y": 0.001}))
    assert np.isfinite(found).all()
    assert (np.diff(found[:5]) > 0).all()
    assert found[5] >= found[4]


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed()


@pytest.fixture(scope="module")
def fitted(table: Any) -> NITSDensity:
    return small(outliers=True, max_steps=60).fit(table)


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
    assert found[2, 2] == pytest.approx(-math.log(fitted.schema_.columns[2].unseen))
    assert found[5, 0] == pytest.approx(-math.log(table["size"].isna().mean()), abs=0.7)
    np.testing.assert_allclose(fitted.outlier_scores(odd), found.sum(1))


def test_a_column_that_a_table_lacks_is_named(fitted: NITSDensity, table: Any) -> None:
    lacking = str(table.columns[1])
    with pytest.raises(ValueError, match=f"the table must have the column '{lacking}'"):
        fitted.outlier_scores(table.drop(columns=lacking))


def test_a_file_keeps_the_network(fitted: NITSDensity, table: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.nits")
    loaded = nits.load(tmp_path / "model.nits")
    assert np.array_equal(loaded.outlier_scores(table), fitted.outlier_scores(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": [None] * 7}, "of other columns"),
        ({"places": [[0.0, 0.0, 0.0, 1.0]] * 7}, "are no numbers"),
    ],
)
def test_other_places_are_refused(
    fitted: NITSDensity, change: dict[str, Any], message: str
) -> None:
    network = fitted.outliers_
    assert network is not None
    about = network.description() | change
    with pytest.raises(ValueError, match=message):
        blurred.OutlierNetwork.described(about, fitted.schema_.columns, _room())


def _room() -> Any:
    from nits.model import storage

    return storage.allowance({"x": torch.zeros(10**6)})


def test_what_support_rules_out_is_infinitely_far() -> None:
    x = np.random.default_rng(0).gamma(2.0, 30.0, (200, 1))
    model = small(outliers=True, max_steps=5, support={"x0": (0.0, math.inf)}).fit(x)
    assert model.outlier_scores([[-1.0]])[0] == math.inf


def test_a_lone_network_has_none_by_default(table: Any) -> None:
    numbers = table[["size", "rain"]]
    assert small(max_steps=2).fit(numbers).outliers_ is None
    assert small(max_steps=2, members=2).fit(numbers).outliers_ is not None
    assert small(max_steps=2, members=2, outliers=False).fit(numbers).outliers_ is None


def test_columns_that_are_given_are_read(table: Any) -> None:
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 400)
    rows = pandas.DataFrame({"side": side, "x": 10 * side + rng.normal(size=400)})
    model = small(outliers=True, context=["side"], max_steps=300).fit(rows)
    found = model.outlier_scores(pandas.DataFrame({"side": [1.0, 1.0], "x": [10.0, -10.0]}))
    assert found[1] > found[0] + 1


def test_weights_count(table: Any) -> None:
    amounts = np.array([0.0, 1.0, 10.0])
    place = Place.of(amounts, np.array([1.0, 1.0, 0.0]))
    assert (place.middle, place.spread) == (0.5, 0.5)
    assert place.high == pytest.approx(19)


def test_the_command_line_trains_it(tmp_path: Path, table: Any) -> None:
    table.to_csv(tmp_path / "table.csv", index=False)
    argv = ["fit", str(tmp_path / "table.csv"), "--max-steps", "2", "--quiet"]
    for flag, has in (("--outliers", True), ("--no-outliers", False)):
        assert main([*argv, flag, "-o", str(tmp_path / "model.nits")]) == 0
        assert (nits.load(tmp_path / "model.nits").outliers_ is not None) is has


def test_a_checkpoint_keeps_it(tmp_path: Path, table: Any) -> None:
    numbers = table[["size", "rain"]]
    first = small(outliers=True, max_steps=20, checkpoint=tmp_path / "kept").fit(numbers)
    again = small(outliers=True, max_steps=20, checkpoint=tmp_path / "kept").fit(numbers)
    assert (tmp_path / "kept" / "outliers.safetensors").exists()
    assert np.array_equal(first.outlier_scores(numbers), again.outlier_scores(numbers))
