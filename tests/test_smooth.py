"""The smooth model in NumPy: the PNN that training starts from, with tails; mass is one."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import nits
from nits.pnn import initial
from nits.tables.evidence import smooth
from nits.tables.evidence.smooth import Mixture, Smooth
from nits.tables.evidence.tails import Tail

rng = np.random.default_rng(0)
SAMPLES = {
    "normal": np.sort(rng.normal(size=1000)),
    "ties": np.sort(np.round(rng.normal(size=1000))),
    "skewed": np.sort(np.exp(2 * rng.normal(size=1000))),
    "spike": np.sort(np.append(np.zeros(700), rng.normal(size=300))),
}


def mixture(x: NDArray[np.float64]) -> Mixture:
    return Mixture.at_quantiles(smooth.quantiles(x, np.ones(len(x)), smooth.levels()))


@pytest.mark.parametrize("name", SAMPLES)
def test_is_the_pnn_that_training_starts_from(name: str) -> None:
    x = SAMPLES[name]
    ours, theta = mixture(x), initial.from_quantiles(torch.tensor(x), (smooth.UNITS,))
    theirs = nits.PNN(theta, -math.inf, math.inf, hidden=(smooth.UNITS,))
    u = np.concatenate([np.linspace(-60, 60, 301), x[::50]])
    np.testing.assert_allclose(ours.log_density(u), theirs.log_prob(torch.tensor(u)), atol=1e-6)
    np.testing.assert_allclose(ours.cdf(u), theirs.cdf(torch.tensor(u)), atol=1e-9)
    start, end = u[:300], u[1:301]
    masses = theirs.log_mass(torch.tensor(start), torch.tensor(end))
    np.testing.assert_allclose(ours.log_mass(start, end), masses, atol=1e-6)


def test_masses_are_right_in_the_far_tails_and_for_narrow_cells() -> None:
    ours = Mixture(np.array([0.0, 1.0]), np.array([0.5, 2.0]))
    # Beyond all centres Σ exp(−(u − c)/s)/2, of which the wider one is all that counts.
    far = ours.log_mass(np.array([5000.0, -5001.0]), np.array([5001.0, -5000.0]))
    log_width = math.log(-math.expm1(-0.5))
    expected = [-4999 / 2, -5001 / 2]
    np.testing.assert_allclose(far, np.array(expected) + log_width - math.log(2), rtol=1e-12)
    u, width = np.array([0.3, 700.0, 3000.0]), 1e-9
    narrow = ours.log_mass(u, u + width)
    np.testing.assert_allclose(narrow, ours.log_density(u) + math.log(width), atol=1e-3)


def test_infinite_ends() -> None:
    ours = mixture(SAMPLES["normal"])
    whole = ours.log_mass(np.array([-np.inf, -np.inf, 0.3]), np.array([np.inf, 0.3, np.inf]))
    assert whole[0] == pytest.approx(0, abs=1e-12)
    assert np.exp(whole[1:]).sum() == pytest.approx(1)


@pytest.mark.parametrize("name", SAMPLES)
def test_mass_is_one_with_tails_and_beyond_a_limit_there_is_none(name: str) -> None:
    x = SAMPLES[name]
    lower, upper = Tail(0.02, 3.0, room=0.5), Tail(0.01, 0.7)
    model = Smooth(mixture(x), float(x[0]), float(x[-1]), lower, upper)
    edges = np.concatenate(
        [[-np.inf, x[0] - 0.5], np.linspace(x[0] - 0.4, x[-1] + 3, 999), [x[-1] + 9, np.inf]]
    )
    masses = np.exp(model.log_mass(edges[:-1], edges[1:]))
    assert masses[0] == 0
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    assert model.cdf(np.array([x[0], x[-1]])) == pytest.approx([0.02, 0.99])
    assert model.log_density(np.array([x[0] - 0.51]))[0] == -np.inf


def test_density_is_the_slope_of_the_mass() -> None:
    x = SAMPLES["normal"]
    model = Smooth(mixture(x), float(x[0]), float(x[-1]), Tail(0.02, 3.0, 0.5), Tail(0.01, 0.7))
    u = np.array([x[0] - 0.3, -1.0, 0.0, 2.0, x[-1] + 0.1, x[-1] + 40.0])
    slope = model.log_mass(u - 1e-6, u + 1e-6) - math.log(2e-6)
    np.testing.assert_allclose(model.log_density(u), slope, atol=1e-6)


def test_a_cell_across_an_end_has_the_mass_of_both_sides() -> None:
    x = SAMPLES["normal"]
    model = Smooth(mixture(x), float(x[0]), float(x[-1]), Tail(0.02, 3.0), Tail(0.01, 0.7))
    a, b, c = np.array([x[-1] - 0.5]), np.array([x[-1]]), np.array([x[-1] + 0.5])
    both = np.exp(model.log_mass(a, b)) + np.exp(model.log_mass(b, c))
    np.testing.assert_allclose(np.exp(model.log_mass(a, c)), both, rtol=1e-12)


def test_quantiles_of_counted_values_are_those_of_the_whole_sample() -> None:
    values, counts = np.unique(SAMPLES["ties"], return_counts=True)
    levels = np.array([0.0, 0.013, 0.5, 0.77, 1.0])
    found = smooth.quantiles(values, counts.astype(float), levels)
    np.testing.assert_allclose(found, np.quantile(SAMPLES["ties"], levels))


def test_quantiles_of_cells_spread_their_values_evenly() -> None:
    found = smooth.cell_quantiles(
        np.array([0.0, 1.0]),
        np.array([1.0, 3.0]),
        np.array([1.0, 3.0]),
        np.array([0.125, 0.25, 0.625]),
    )
    np.testing.assert_allclose(found, [0.5, 1.0, 2.0])
