"""Mean, variance, entropy and mode by quadrature, against closed forms, samples and autograd."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from nits import PNN
from nits.pnn import distributions, initial, moments
from pnns import every_dtype, every_hidden, every_support, logistic, spikes, weights

inf = math.inf


@every_dtype
@pytest.mark.parametrize("centre", [0.0, -3.0, 1000.0])
def test_one_unit_on_the_line_is_a_logistic(centre: float, dtype: torch.dtype) -> None:
    # Mean b and variance s² π² / 3.
    d = PNN(logistic(centre, 0.5, dtype), -inf, inf, hidden=(1,))
    room = 1e-3 if dtype == torch.float32 else 1e-9
    assert d.mean.item() == pytest.approx(centre, rel=1e-6, abs=room)
    assert d.variance.item() == pytest.approx(0.25 * math.pi**2 / 3, rel=room * 10)


def test_a_flat_unit_on_an_interval_is_uniform() -> None:
    d = PNN(logistic(0.0, 1e6, torch.float64), -1.0, 2.0, hidden=(1,))
    assert d.mean.item() == pytest.approx(0.5, abs=1e-6)
    assert d.variance.item() == pytest.approx(9 / 12, abs=1e-6)


@every_hidden
@every_support
def test_moments_are_the_integrals_of_the_density(
    low: float, high: float, hidden: tuple[int, ...]
) -> None:
    theta = weights(1, hidden=hidden, seed=2)[0]
    d = PNN(theta, low, high, hidden)

    u = torch.sigmoid(torch.linspace(-34, 34, 1001, dtype=torch.float64))
    knots = d.icdf(u[u < 1])
    nodes, shares = (torch.as_tensor(a) for a in np.polynomial.legendre.leggauss(5))
    half = knots.diff().unsqueeze(-1) / 2
    x = knots[:-1].unsqueeze(-1) + half * (1 + nodes)
    mass = half * shares * d.log_prob(x).exp()
    mean = (mass * x).sum()
    variance = (mass * (x - mean) ** 2).sum()
    torch.testing.assert_close(d.mean, mean, rtol=0, atol=1e-5 * variance.sqrt().item())
    torch.testing.assert_close(d.variance, variance, rtol=1e-5, atol=0)


def test_moments_have_gradients() -> None:
    theta = logistic(0.3, 0.5, torch.float64).requires_grad_()
    (grad,) = torch.autograd.grad(PNN(theta, -inf, inf, hidden=(1,)).mean, theta)
    # E X = b, whatever the scale.
    torch.testing.assert_close(grad, torch.tensor([0.0, 1.0, 0.0]).double(), atol=1e-6, rtol=0)


# Entropy and mode.


@every_dtype
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 0.5), (-3.0, 2.0), (1000.0, 7.0)])
def test_entropy_and_mode_of_a_logistic(centre: float, scale: float, dtype: torch.dtype) -> None:
    d = PNN(logistic(centre, scale, dtype), -inf, inf, hidden=(1,))
    expected = stats.logistic(centre, scale)
    room = 1e-3 if dtype == torch.float32 else 1e-9
    assert d.entropy().item() == pytest.approx(expected.entropy(), abs=room)
    # The density is flat to rounding around its top.
    assert d.mode.item() == pytest.approx(centre, abs=1e-3 * scale if room == 1e-3 else 1e-7)
    assert d.entropy().dtype == d.mode.dtype == dtype


@every_dtype
@every_support
def test_the_mode_is_wherever_the_top_is(low: float, high: float, dtype: torch.dtype) -> None:
    """No end of the support moves it, though it moves the probability below it."""
    centres = torch.tensor([-0.7, 0.123, 1.9])
    theta = torch.stack([logistic(centre, 0.5, dtype) for centre in centres.tolist()])
    room = 1e-3 if dtype == torch.float32 else 1e-6
    found = PNN(theta, low, high, hidden=(1,)).mode
    torch.testing.assert_close(found, centres.to(dtype), atol=room, rtol=0)


@every_dtype
def test_a_mode_at_the_end_is_the_end(dtype: torch.dtype) -> None:
    theta = torch.stack([logistic(centre, 0.5, dtype) for centre in (-4.0, 5.0, -4.0, 5.0)])
    low = torch.tensor([-1.0, -1.0, -1.0, -inf], dtype=dtype)
    high = torch.tensor([2.0, 2.0, inf, 2.0], dtype=dtype)
    assert PNN(theta, low, high, hidden=(1,)).mode.tolist() == [-1, 2, -1, 2]


@every_dtype
@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-6])
def test_a_narrow_peak_is_not_missed(width: float, dtype: torch.dtype) -> None:
    d = PNN(spikes(width, dtype), -inf, inf, hidden=(2,))
    assert d.mode.item() == pytest.approx(0.3, abs=width)
    # Apart, each component has entropy 2 + log scale; together less than log 2 more.
    parts = stats.entropy([0.01, 0.99]) + 2 + 0.01 * math.log(width)
    assert d.entropy().item() == pytest.approx(parts, abs=0.03)


def test_a_quantile_in_a_gap_does_not_spoil_the_entropy() -> None:
    """Two halves far apart: entropy 2 + log scale + log 2, however far; the gap has no density."""
    A = initial.from_log_weights(-torch.log(torch.tensor([1e-3, 1e-3]).double()))
    for share in (0.5, float(moments.levels(pair(A, 0.5))[0][300, 0])):
        expected = 2 + math.log(1e-3) + stats.entropy([share, 1 - share])
        assert pair(A, share).entropy().item() == pytest.approx(expected, abs=0.02)


def pair(A: torch.Tensor, share: float) -> PNN:
    """Two logistics at 0 and 1000, the first with this share."""
    logits = torch.tensor([[share, 1 - share]]).double().log()
    centres = torch.tensor([[0.0, 1000.0]]).double()
    return PNN(torch.cat([A.unsqueeze(0), centres, logits], 1), -inf, inf, hidden=(2,))


def test_nan_weights_have_no_mode_and_no_entropy() -> None:
    theta = weights(2)
    theta[0, 5] = math.nan
    d = PNN(theta, -1.0, 2.0)
    for value in (d.mode, d.entropy(), d.mean):
        assert value.isnan().tolist() == [True, False]


def test_a_batch_is_cut_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    d = PNN(weights(5, hidden=(4,)).reshape(5, 1, -1), -1.0, 2.0, (4,))
    whole = [d.mean, d.mode, d.entropy()]
    monkeypatch.setattr(distributions, "PNNS_AT_ONCE", 2)
    for found, expected in zip([d.mean, d.mode, d.entropy()], whole, strict=True):
        assert found.shape == (5, 1)
        torch.testing.assert_close(found, expected)


def test_an_empty_batch_has_empty_moments() -> None:
    d = PNN(weights(2)[:0], -1.0, 2.0)
    assert d.mean.shape == d.mode.shape == d.entropy().shape == (0,)
    assert d.sample((3,)).shape == d.log_prob(d.sample((3,))).shape == (3, 0)
