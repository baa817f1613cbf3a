"""Combs: blurred grids are found, others are not; densities have no mass between the teeth."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

import nits
from nits.tables.evidence import combs
from nits.tables.evidence.choice import decide
from nits.tables.evidence.scales import Combed, Linear

N = 4000


def blurred(share: float, step: float = 0.02, rows: int = N) -> NDArray[np.float64]:
    """Gamma variables on a grid, and noise of a share of its step."""
    rng = np.random.default_rng(0)
    return np.floor(rng.gamma(3, 0.2, rows) / step) * step + share * step * rng.random(rows) - 7.3


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_teeth_of_blurred_grids_are_found(share: float, dtype: Any) -> None:
    x = np.unique(blurred(share).astype(dtype).astype(float))
    comb = combs.find(x)
    assert comb is not None
    assert comb.step == pytest.approx(0.02, rel=3e-4)
    assert share < comb.share < share + 0.03
    assert comb.combed(Linear(0.0, 1.0)).holds(x).all()
    missed = comb.combed(Linear(0.0, 1.0)).holds(blurred(share, rows=10 * N).astype(dtype))
    assert missed.mean() > 1 - 5 / N


def test_other_columns_are_no_combs() -> None:
    """None of 400: chance makes a comb in one of a million."""
    rng = np.random.default_rng(1)
    draws = (rng.normal, rng.random, rng.standard_cauchy, lambda size: rng.lognormal(0, 3, size))
    for rows in (10, 100, 1000, 10_000):
        for draw in draws:
            assert not any(combs.find(np.unique(draw(size=rows))) for _ in range(25))


def test_noise_as_wide_as_the_step_and_rounding_are_no_combs() -> None:
    assert combs.find(np.unique(blurred(1.0))) is None
    z = np.unique(np.arange(500) / 7.1 * (1 + 1e-15 * np.random.default_rng(0).random(500)))
    assert combs.find(z) is None


def test_the_column_says_so_and_gains_the_height_of_its_teeth() -> None:
    found, even = decide(blurred(0.25)), decide(blurred(1.0))
    assert isinstance(found.scale, Combed)
    assert "steps of 0.02 blurred by 0.00" in found.reason
    assert found.scores["real"] - even.scores["real"] == pytest.approx(np.log(4), abs=0.1)


@pytest.fixture(scope="module")
def model() -> nits.NITSDensity:
    rng = np.random.default_rng(2)
    table = pandas.DataFrame({"x": blurred(0.25), "y": rng.normal(size=N)})
    table["y"] += table["x"]
    return nits.NITSDensity(max_steps=60, random_state=0).fit(table)


def test_all_mass_is_in_the_teeth(model: nits.NITSDensity) -> None:
    scale = model.schema_.columns[0].ruler.scale  # type: ignore[attr-defined]
    assert isinstance(scale, Combed)
    k = np.arange(np.floor((-7.3 - scale.origin) / scale.step) - 2, 400)
    t = (np.arange(16) + 0.5) / 16 * scale.share
    x = (scale.origin + scale.step * (k[:, None] + t)).ravel()
    density = np.exp(model.score_samples(pandas.DataFrame({"x": x, "y": 0.0}), per_column=True))
    mass = density[:, 0].sum() * scale.step * scale.share / 16
    assert mass == pytest.approx(1, abs=0.01)


def test_samples_lie_in_the_teeth(model: nits.NITSDensity) -> None:
    scale = model.schema_.columns[0].ruler.scale  # type: ignore[attr-defined]
    drawn = model.sample(2000, random_state=0)
    assert scale.holds(drawn["x"].to_numpy()).all()
    assert np.isfinite(model.score_samples(drawn)).all()
    assert not model.unseen(drawn).any()


def test_what_lies_in_a_gap_was_never_seen(model: nits.NITSDensity, tmp_path: Path) -> None:
    scale = model.schema_.columns[0].ruler.scale  # type: ignore[attr-defined]
    gap = scale.origin + scale.step * (40 + np.array([1.1, 0.5 + scale.share / 2, 0.9]))
    rows = pandas.DataFrame({"x": gap[1:], "y": -6.0})
    assert model.unseen(rows)[:, 0].all()
    assert np.isfinite(model.score_samples(rows)).all()
    law = model.given()
    below, above = (float(law.cdf("x", float(value))) for value in gap[1:])
    assert below == pytest.approx(above, abs=1e-6)
    model.save(tmp_path / "model.nits")
    again = nits.load(tmp_path / "model.nits")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
