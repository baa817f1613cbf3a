"""Several networks as one model: folds, the mixture's scores, samples and conditionals, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.stats
import torch

import nits
from mixed_table import mixed, small
from nits import Mixture, NITSDensity
from nits.tables import members
from nits.training.progress import Reporter
from nits.training.recipe import Recipe


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed(240)


@pytest.fixture(scope="module")
def fitted(table: Any) -> NITSDensity:
    return small(members=3, max_steps=8).fit(table)


def test_no_row_is_held_out_twice_and_all_are_learned_from() -> None:
    parts = members.folds(100, NITSDensity(members=4, validation_fraction=0.2), 0)
    held_out = torch.cat([part[1] for part in parts]).tolist()
    assert len(held_out) == len(set(held_out)) == 80
    for fitted, kept in parts:
        assert sorted([*fitted.tolist(), *kept.tolist()]) == list(range(100))
    assert set(torch.cat([part[0] for part in parts]).tolist()) == set(range(100))
    parts = members.folds(10, NITSDensity(members=20), 0)
    assert all(len(fitted) == 10 for fitted, _ in parts)


def test_the_density_is_the_mean_of_the_members(fitted: NITSDensity, table: Any) -> None:
    model = fitted.model_
    assert isinstance(model, Mixture)
    assert len(model.members) == 3
    parts = []
    for member in model.members:
        one = nits.NITSDensity.__new__(NITSDensity)
        one.__dict__ = {**fitted.__dict__, "model_": member}
        parts.append(one.score_samples(table))
    assert np.std(parts, 0).max() > 1e-3
    expected = np.log(np.exp(np.array(parts) - np.max(parts, 0)).mean(0)) + np.max(parts, 0)
    np.testing.assert_allclose(fitted.score_samples(table), expected, atol=2e-4)
    shares = fitted.score_samples(table, per_column=True)
    np.testing.assert_allclose(shares.sum(1), expected, atol=2e-4)


def test_the_figure_is_that_of_the_rows_each_member_held_out(
    fitted: NITSDensity, table: Any
) -> None:
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    found = []
    parts: Any = fitted.model_.members
    for (_, kept), member in zip(members.folds(len(table), fitted, seed), parts, strict=True):
        one = nits.NITSDensity.__new__(NITSDensity)
        one.__dict__ = {**fitted.__dict__, "model_": member}
        found.append(one.score_samples(table.iloc[kept.numpy()]))
    assert fitted.held_out_ == pytest.approx(np.concatenate(found).mean(), abs=1e-3)


def test_samples_given_columns_and_files(fitted: NITSDensity, table: Any, tmp_path: Path) -> None:
    drawn = fitted.sample(400, random_state=0)
    assert np.isfinite(fitted.score_samples(drawn)).all()
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    given = fitted.sample(20, random_state=0, given={"size": 40.1})
    assert (given["size"] == 40.1).all()
    assert fitted.sample(50, random_state=0, complete=True).notna().all().all()
    fitted.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert np.array_equal(again.score_samples(table), fitted.score_samples(table))
    pandas.testing.assert_frame_equal(again.sample(30, random_state=1), fitted.sample(30, 1))


def test_conditionals_are_those_of_the_mixture(table: Any) -> None:
    table = table[["city", "size"]].dropna()
    model = small(context=["city"], members=2, max_steps=8).fit(table)
    quantiles = model.predict_quantiles(table[:5], [0.1, 0.5, 0.9])
    below = [model.cdf(table[:5].assign(size=q)) for q in quantiles.T]
    np.testing.assert_allclose(
        np.array(below), np.array([[0.1], [0.5], [0.9]]) * np.ones(5), atol=0.02
    )
    levels = (np.arange(2000) + 0.5) / 2000
    mean = model.predict_quantiles(table[:5], levels).mean(1)
    np.testing.assert_allclose(model.predict_mean(table[:5]), mean, rtol=0.01)


def test_filled_rows_are_those_of_the_mixture() -> None:
    """Rows from one member each have the mixture's distribution: its transform is uniform."""
    from registry import MODELS

    model = MODELS["mixture"]()
    u = torch.rand(4000, model.columns, generator=torch.Generator().manual_seed(0))
    none = torch.full_like(u, torch.nan)
    with torch.no_grad():
        rows = model.filled(u, none)
        back = model.to_uniform(rows)
        again = model.filled(u, none)
    for column in back.t().numpy():
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-4
    assert torch.equal(rows, again)


def test_processes_are_started_if_there_is_work_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "available", lambda: 3)
    rows = nits.Rows(torch.zeros(100, 2))
    index, recipe = torch.arange(0), Recipe()
    task = members.Task(nits.NITS.mlp(2), rows, index, index, recipe, 10, None, 0)
    assert members._workers([task] * 4) == 1
    assert members._workers([task._replace(max_steps=10_000)] * 4) == 3
    assert members._workers([task._replace(max_steps=10_000)] * 2) == 2
    assert members._workers([task._replace(max_steps=None, max_minutes=1.0)] * 2) == 2
    assert members._workers([task._replace(max_steps=None, max_minutes=0.01)] * 2) == 1


def test_an_interrupt_before_any_member_has_begun_is_one(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(task: members.Task, reporter: Reporter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(members, "trained", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(members=2, max_steps=8).fit(table)


def test_members_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="members must be"):
        NITSDensity(members=0).fit(np.random.default_rng(0).normal(size=(20, 2)))
