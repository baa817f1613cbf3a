"""Calibrated densities: B of every column, with masses and densities, against sums by hand."""

import math

import pytest
import torch
from torch import Tensor

from nits import NITS, Calibrated
from nits.heads import Atoms, Continuous, Integer
from nits.model.calibrated import BUMPS
from nits.model.curve import Curve
from registry import randomized, seeded


def curve(seed: int, scale: float = 1.0) -> Curve:
    weights = torch.randn(BUMPS, generator=seeded(seed), dtype=torch.float64) * scale
    return Curve(weights.softmax(0))


@pytest.mark.parametrize("scale", [0.0, 1.0, 6.0])
def test_a_curve_rises_from_zero_to_one_and_is_inverted(scale: float) -> None:
    b = curve(0, scale)
    u = torch.linspace(0, 1, 1001, dtype=torch.float64)
    heights = b.at(u)
    assert heights[0] == 0
    assert heights[-1] == 1
    assert (heights.diff() > 0).all()
    torch.testing.assert_close(b.at(b.inverse(u)), u, rtol=0, atol=1e-12)
    if scale == 0:
        torch.testing.assert_close(heights, u, rtol=0, atol=1e-15)


def test_slopes_are_those_of_the_curve() -> None:
    b = curve(1)
    u = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    rise = (b.at(u + 1e-6) - b.at(u - 1e-6)) / 2e-6
    torch.testing.assert_close(b.log_slope(u, torch.zeros_like(u)).exp(), rise, rtol=1e-6, atol=0)
    mass = torch.full_like(u, 0.02)
    wide = (b.at(u + 0.01) - b.at(u - 0.01)) / 0.02
    torch.testing.assert_close(b.log_slope(u, mass).exp(), wide, rtol=1e-9, atol=0)


def test_masses_that_tile_zero_to_one_still_sum_to_one() -> None:
    """In float32, whether they are large or far smaller than its rounding of B."""
    b = curve(2)
    for count in (3, 1000, 300_000):
        p = torch.rand(count, generator=seeded(count), dtype=torch.float64)
        p = p / p.sum()
        middle = p.cumsum(0) - p / 2
        found = p.float().log() + b.log_slope(middle.float(), p.float())
        assert found.double().exp().sum().item() == pytest.approx(1, abs=2e-6)


def test_a_single_bump_is_never_nan() -> None:
    for one in torch.eye(BUMPS, dtype=torch.float64):
        u = torch.linspace(0, 1, 500)
        for mass in (0.0, 1e-8, 1e-5, 0.3):
            assert not Curve(one).log_slope(u, torch.full_like(u, mass)).isnan().any()


def one_column(head: Atoms | Continuous | Integer) -> Calibrated:
    logits = torch.randn(1, BUMPS, generator=seeded(5))
    base = randomized(lambda: NITS.independent([head]), 7)
    return Calibrated(base, logits).double().requires_grad_(False)


def by_steps(f: Tensor, x: Tensor) -> float:
    """The trapezoidal rule."""
    return float(((f[1:] + f[:-1]) / 2 * x.diff()).sum())


def test_atoms_and_the_density_between_them_have_mass_one_together() -> None:
    model = one_column(Atoms((0.0, 0.5), -2.0, 2.0, (6, 5)))
    atoms = torch.tensor([[0.0], [0.5]], dtype=torch.float64)
    total = float(model.log_prob(atoms).exp().sum())
    for low, high in ((-2.0, 0.0), (0.0, 0.5), (0.5, 2.0)):
        x = torch.linspace(low, high, 20_001, dtype=torch.float64)[1:-1]
        total += by_steps(model.log_prob(x.unsqueeze(1)).exp(), x)
    assert total == pytest.approx(1, abs=1e-3)
    plain = model.density
    jump = plain.log_prob(atoms) - model.log_prob(atoms)
    assert (jump.abs() > 1e-3).all()


def test_integers_have_mass_one_and_their_cdf_is_its_sum() -> None:
    model = one_column(Integer(0, 30, shift=12.0, scale=5.0, hidden=(6, 5)))
    x = torch.arange(31, dtype=torch.float64).unsqueeze(1)
    mass = model.log_prob(x).exp()
    assert float(mass.sum()) == pytest.approx(1, abs=1e-12)
    law = model.conditionals(x[:1])[0]
    torch.testing.assert_close(law.cdf(x)[:, 0], mass.cumsum(0), rtol=0, atol=1e-12)


def test_narrower_and_broader() -> None:
    """Weight in the middle narrows: quantiles move towards the median, and 90 % intervals too."""
    middle = torch.linspace(-1, 1, BUMPS).square().unsqueeze(0)
    base = randomized(lambda: NITS.independent([Continuous(hidden=(6, 5))]), 3)
    base.requires_grad_(False)
    laws = [
        Calibrated(base, sign * 3 * middle).conditionals(torch.zeros(1, 1))[0]
        for sign in (-1.0, 0.0, 1.0)
    ]
    widths = [float(law.icdf(torch.tensor(0.95)) - law.icdf(torch.tensor(0.05))) for law in laws]
    assert widths == sorted(widths)
    assert widths[0] < 0.9 * widths[1]
    assert widths[2] > 1.1 * widths[1]
    deviations = [math.sqrt(float(law.variance)) for law in laws]
    assert deviations == sorted(deviations)


def test_columns_with_equal_logits_are_left_as_they_are() -> None:
    base = randomized(lambda: NITS.mlp(2, hidden=16, blocks=1), 4)
    x = torch.randn(20, 2, generator=seeded(0))
    assert torch.equal(Calibrated(base).log_prob(x), base.log_prob(x))
    assert torch.equal(Calibrated(base).to_uniform(x), base.to_uniform(x))


def test_logits_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"logits must have the shape \(2, 12\), one row per col"):
        Calibrated(NITS.independent(2), torch.zeros(3, BUMPS))
