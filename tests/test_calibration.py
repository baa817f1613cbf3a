"""Curves of a mixture: fitted to held-out rows, used where they pay, kept in the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
import torch

import nits
from mixed_table import mixed
from nits import Calibrated
from nits.model.calibrated import BUMPS
from nits.model.curve import Curve
from nits.tables import calibration, told, widths
from nits.tables.stacking import Numbers
from test_members import WEIGHTS, Trained, fit, scored

ALONE = torch.ones(1, dtype=torch.float64)


def seen(columns: list[Numbers], first: int = 0) -> calibration.Seen:
    """Where rows lie under one member, by columns of probabilities, none of which has a mass."""
    middle = torch.from_numpy(np.stack(columns, 1))
    which = np.arange(first, first + len(middle))
    mass = torch.zeros_like(middle)
    return calibration.Seen(which, middle, mass, middle.unsqueeze(0), ALONE)


def test_too_broad_a_mixture_is_narrowed_by_what_it_gains() -> None:
    rng = np.random.default_rng(0)
    parts = [seen([rng.beta(3, 3, 2000), rng.random(2000)], 2000 * k) for k in range(3)]
    found = calibration.found(parts, None, [1.0])
    assert found is not None
    assert sorted(found.which) == list(range(6000))
    gained = -scipy.stats.beta(3, 3).entropy()
    error = 2 * found.gains.std() / np.sqrt(6000)
    assert abs(found.gains.mean() - gained) < error + 0.01
    u = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)
    narrow, even = (Curve(row.softmax(0)).log_slope(u, 0 * u).exp() for row in found.logits)
    np.testing.assert_allclose(narrow, scipy.stats.beta(3, 3).pdf(u), atol=0.15)
    np.testing.assert_allclose(even, 1, atol=0.15)


def test_few_rows_tell_a_width_better_than_bumps() -> None:
    """Scores of 60 rows have the standard deviation 0.6: what the curve gains nears the truth."""
    width, truth, even = 0.6, scipy.stats.norm(), np.linspace(0.0005, 0.9995, 1000)
    other = truth.cdf(width * truth.ppf(even))
    at = torch.from_numpy(other)
    best = -np.log(width) - truth.expect(lambda z: (1 - width**2) * z**2 / 2)
    gained: dict[str, list[float]] = {"width": [], "bumps": []}
    for seed in range(20):
        z = width * np.random.default_rng(seed).normal(size=(60, 1, 1))
        scores = widths.bumps(torch.from_numpy(truth.cdf(z[:, :, 0])), torch.zeros(60, 1)).numpy()
        for name, found in (("width", widths.fitted), ("bumps", calibration.by_bumps)):
            curve = Curve(torch.from_numpy(found(scores, np.ones(60))[0]))
            gained[name].append(float(curve.log_slope(at, 0 * at).mean()))
    assert np.mean(gained["width"]) > np.mean(gained["bumps"])
    assert np.mean(gained["width"]) == pytest.approx(best, abs=0.03)


def test_each_column_has_its_width_and_one_stays_as_it_is() -> None:
    rng = np.random.default_rng(5)
    z = torch.from_numpy(rng.normal(size=(4000, 2)) * [0.5, 1.0])
    u = torch.special.ndtr(z)
    weights = widths.fitted(widths.bumps(u, 0 * u).numpy(), np.ones(4000))
    np.testing.assert_allclose(weights[0], widths.normal()[np.argmin(abs(widths.WIDTHS - 0.5))])
    np.testing.assert_allclose(weights[1], 1 / BUMPS)


@pytest.mark.parametrize("count", [10, 40, 3000])
def test_what_is_right_is_left_alone(count: int) -> None:
    rng = np.random.default_rng(1)
    parts = [seen([rng.random(count)], count * k) for k in range(2)]
    assert calibration.found(parts, None, [1.0]) is None
    assert calibration.found(parts[:1], None, [1.0]) is None
    assert calibration.found([], None, [1.0]) is None


def test_gains_are_of_rows_that_the_curve_was_not_fitted_to() -> None:
    """One fold is too broad and the other too narrow: neither helps the other."""
    rng = np.random.default_rng(2)
    parts = [seen([rng.beta(4, 4, 500)]), seen([rng.beta(0.4, 0.4, 500)], 500)]
    assert calibration.found(parts, None, [1.0]) is None


def test_rows_count_by_their_weight() -> None:
    rng = np.random.default_rng(3)
    u = np.where(np.arange(4000) % 2, rng.beta(4, 4, 4000), rng.random(4000))
    weight = np.where(np.arange(4000) % 2, 1.0, 1e-9)
    parts = [seen([u[:2000]]), seen([u[2000:]], 2000)]
    found, plain = calibration.found(parts, weight, [1.0]), calibration.found(parts, None, [1.0])
    assert found is not None
    heights = [0.0 if f is None else float(f.logits.softmax(1)[0, 6]) for f in (found, plain)]
    assert heights[0] > 1.2 * heights[1]


def erring(members: int, rows: int, own: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Where targets lie under normal laws whose centres err by √own beside what all share.

    Each law is as broad as it errs: of their mixture, and of each alone, shapes (N, 1), (K, N, 1).
    """
    rng = np.random.default_rng(4)
    off = rng.normal(size=rows) - np.sqrt(own) * rng.normal(size=(members, rows))
    alone = scipy.special.ndtr(off / np.sqrt(1 + own))
    return torch.from_numpy(alone.mean(0)[:, None]), torch.from_numpy(alone[:, :, None])


@pytest.mark.parametrize("own", [0.3, 1.0, 3.0])
def test_few_members_tell_how_broad_a_mixture_of_many_is(own: float) -> None:
    """Equation (42): scores under three, made narrower, are spread as those under twelve are."""
    rows = 40_000
    parts = []
    for k in range(2):
        middle, alone = erring(3, rows, own)
        which = np.arange(k * rows, (k + 1) * rows)
        shares = torch.full((3,), 1 / 3, dtype=torch.float64)
        parts.append(calibration.Seen(which, middle, 0 * middle, alone, shares))
    first, second = (float(one[0]) for one in calibration._narrower(parts, 12.0))
    few = torch.special.ndtri(parts[0].middle).std()
    many = torch.special.ndtri(erring(12, rows, own)[0]).std()
    assert 0.6 < float(many / few) < 0.98
    assert first == second == pytest.approx(float(many / few), abs=0.03)
    assert float(calibration._narrower(parts, 3.0)[0][0]) == pytest.approx(1.0)


def test_what_folds_err_by_is_told_apart_from_what_all_do() -> None:
    """Equation (50): scores under one fold's three networks, and under twelve of four folds."""
    rows, own, apart = 40_000, 0.5, 0.6
    rng = np.random.default_rng(7)
    f = np.sqrt(apart * own)  # a part of what networks of a fold share, whose variance is 1
    noise = np.sqrt(1 - f**2) * rng.normal(size=rows)
    by_fold = f * rng.normal(size=(4, 1, rows))
    off = noise - by_fold - np.sqrt(own) * rng.normal(size=(4, 3, rows))
    alone = torch.from_numpy(scipy.special.ndtr(off / np.sqrt(1 + own)))
    shares, which = torch.full((3,), 1 / 3, dtype=torch.float64), np.arange(rows)
    parts = [
        calibration.Seen(which, one.mean(0)[:, None], 0 * one[0, :, None], one[..., None], shares)
        for one in alone
    ]
    few = np.mean([float(torch.special.ndtri(part.middle).std()) for part in parts])
    many = float(torch.special.ndtri(alone.mean((0, 1))).std())
    without = float(calibration._narrower(parts, 12.0)[0][0])
    found = float(calibration._narrower(parts, 12.0, apart, 4)[0][0])
    assert found == pytest.approx(many / few, abs=0.02)
    assert abs(without - many / few) > 0.06


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed(240)


@pytest.fixture(scope="module")
def trained(table: Any) -> Trained:
    return fit(table, WEIGHTS, curves=True, members=6, max_steps=8)


def test_curves_change_the_density_and_the_held_out_figure(trained: Trained, table: Any) -> None:
    model = trained.model
    assert isinstance(model.model_, Calibrated)
    plain = scored(model, model.model_.density, table)
    assert np.abs(model.score_samples(table) - plain).max() > 0.01
    without = fit(table, WEIGHTS, members=6, max_steps=8).model
    without.schema_ = model.schema_  # what lies beyond the ends follows the density
    np.testing.assert_allclose(without.score_samples(table), plain)
    assert model.held_out_ is not None
    assert without.held_out_ is not None
    assert abs(model.held_out_ - without.held_out_) > 1e-4


def test_columns_without_order_or_with_holes_have_no_curve(trained: Trained) -> None:
    model = trained.model
    assert isinstance(model.model_, Calibrated)
    for i, column in enumerate(model.schema_.columns):
        if column.optional or column.kind == "categorical":
            assert model.model_.curve(i) is None


def test_users_are_told_which_columns_were_made_narrower_or_broader() -> None:
    base = nits.NITS.independent(2)
    logits = torch.zeros(2, BUMPS)
    logits[1] = -3 * torch.linspace(-1, 1, BUMPS).square()
    head, line = told.curves(Calibrated(base, logits), ["size", "price"])
    assert head == "made narrower or broader by held-out rows:"
    rises = Curve(logits[1].double().softmax(0)).at
    low, high = (
        scipy.optimize.brentq(lambda u, level=level: float(rises(torch.tensor(u))) - level, 0, 1)
        for level in (0.05, 0.95)
    )
    assert line == f"  price: 90 % intervals are the mixture's {high - low:.0%} ones"
    assert high - low < 0.8
    assert told.curves(base, ["size", "price"]) == []


def test_samples_and_files(trained: Trained, table: Any, tmp_path: Path) -> None:
    model = trained.model
    drawn = model.sample(300, random_state=0)
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    assert np.isfinite(model.score_samples(drawn)).all()
    model.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert np.array_equal(again.score_samples(table), model.score_samples(table))
    pandas.testing.assert_frame_equal(again.sample(30, random_state=1), model.sample(30, 1))
    assert again.held_out_ == model.held_out_
