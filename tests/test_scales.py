"""Scales: increasing, undone by `back`, slopes are derivatives, at any magnitude."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import scales, scaling
from nits.tables.evidence.scales import Asinh, Combed, Linear, Log, Logit, Scale

rng = np.random.default_rng(0)
NORMAL = np.sort(rng.normal(size=500))
COMB = Combed(Linear(3.0, 2.0), 0.3, 0.1, 0.4)
TEETH = Combed(Log(-5.0, 1, 0.5, 0.5), -0.02, 0.25, 0.9)


def inside(comb: Combed) -> NDArray[np.float64]:
    """Returns values well inside the teeth, where the slope is that of both sides."""
    x = comb.back(NORMAL)
    part = ((x - comb.origin) / comb.step) % 1 / comb.share
    return np.asarray(x[(part > 0.05) & (part < 0.95)])


SCALES: dict[str, tuple[Scale, NDArray[np.float64]]] = {
    "linear": (Linear(3.0, 2.0), NORMAL),
    "linear, tiny": (Linear(3e-300, 2e-300), 1e-300 * NORMAL),
    "linear, huge": (Linear(1e308, 1e307), 1.7e308 * np.linspace(-1, 1, 99)),
    "log": (Log(-1.0, 1, 0.5, 2.0), np.exp(NORMAL)),
    "log of 1e-300 to 1e300": (Log(0.0, 1, 0.0, 300.0), 10.0 ** np.linspace(-300, 300, 99)),
    "mirrored log": (Log(2.0, -1, 0.5, 2.0), 2 - np.exp(NORMAL[::-1])),
    "asinh": (Asinh(1.0, 0.5, 1.5), NORMAL),
    "asinh to 1e308": (
        Asinh(0.0, 1e-10, 1.0),
        np.concatenate([-(10.0 ** np.arange(308.0, -12, -8)), 10.0 ** np.arange(-12, 309.0, 8)]),
    ),
    "combed": (COMB, inside(COMB)),
    "combed log": (TEETH, inside(TEETH)),
    "logit": (Logit(0.3, 2.0), 1 / (1 + np.exp(-5 * NORMAL))),
}


def spread(name: str, x: NDArray[np.float64]) -> float:
    """Where straight scales round; logarithms keep all digits of small values."""
    return float(np.abs(x).max()) if name.startswith("linear") else float(np.abs(x).min())


@pytest.mark.parametrize("name", SCALES)
def test_back_undoes_to(name: str) -> None:
    scale, x = SCALES[name]
    u = scale.to(x)
    assert np.isfinite(u).all()
    assert (np.diff(u) > 0).all()
    np.testing.assert_allclose(scale.back(u), x, rtol=1e-11, atol=1e-13 * spread(name, x))


@pytest.mark.parametrize("name", SCALES)
def test_slope_is_the_derivative(name: str) -> None:
    scale, x = SCALES[name]
    step = 1e-4 * np.exp(-scale.log_slope(x))
    inner = np.abs(x) < 1e308
    change = scale.to((x + step)[inner]) - scale.to((x - step)[inner])
    np.testing.assert_allclose(change, 2e-4, rtol=1e-3)


@pytest.mark.parametrize("name", SCALES)
def test_json_brings_a_scale_back(name: str) -> None:
    scale, _ = SCALES[name]
    assert scales.from_dict(json.loads(json.dumps(scale.to_dict()))) == scale


@pytest.mark.parametrize("name", SCALES)
def test_back_is_finite_however_far(name: str) -> None:
    assert np.isfinite(SCALES[name][0].back(np.array([-1e6, 1e6]))).all()


def test_log_has_no_place_below_its_offset() -> None:
    assert Log(0.0, 1, 0.0, 1.0).to(np.array([-1.0, 0.0])).tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize(
    "x",
    [
        NORMAL,
        1e300 * NORMAL,
        1e-300 * np.exp(NORMAL),
        np.append(NORMAL, 2000000000.0),
        np.exp(9 * NORMAL),
        1.7e308 * np.linspace(-1, 1, 99),
        -np.exp(NORMAL)[::-1],
        np.arange(1.0, 99) * 5e-324,
    ],
)
def test_fitted_scales_hold_all_values_at_ordinary_size(x: NDArray[np.float64]) -> None:
    found = scaling.fitted(x, np.ones(len(x)), (float(x[0]), float(x[-1])))
    assert any(isinstance(scale, Asinh) for scale in found)
    for scale in found:
        u = scale.to(x)
        assert np.isfinite(u).all()
        assert (np.diff(u) > 0).all()
        assert abs(np.median(u)) < 0.02
        assert 0.3 < np.quantile(u, 0.75) - np.quantile(u, 0.25) < 3


def test_logs_start_at_zero_or_beyond_the_extreme_value() -> None:
    x = np.exp(NORMAL)
    logs = [s for s in scaling.fitted(x, np.ones(500), (x[0], x[-1])) if isinstance(s, Log)]
    assert [log.offset for log in logs] == [0.0, pytest.approx(2 * x[0] - np.quantile(x, 0.01))]
    mirrored = [
        s for s in scaling.fitted(-x[::-1], np.ones(500), (-x[-1], -x[0])) if isinstance(s, Log)
    ]
    assert [log.sign for log in mirrored] == [-1, -1]
    assert mirrored[1].offset == pytest.approx(-logs[1].offset)


def test_spread_of_values_of_which_most_agree() -> None:
    assert scaling.spread(np.array([0.0, 1.0]), np.array([80.0, 20.0])) == pytest.approx(1 / 2.563)
    assert scaling.spread(np.array([0.0, 8.0]), np.array([999.0, 1.0])) == pytest.approx(1.0)
