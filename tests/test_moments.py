"""Mean and variance by quadrature, against closed forms, samples and autograd."""

import math

import numpy as np
import pytest
import torch

from nits import PNN
from nits.pnn import initial
from pnns import every_dtype, every_hidden, every_support, weights

inf = math.inf


def logistic(centre: float, scale: float, dtype: torch.dtype) -> torch.Tensor:
    A = initial.from_log_weights(-torch.log(torch.tensor([scale], dtype=torch.float64)))
    return torch.cat([A, torch.tensor([centre, 0.0])]).to(dtype)


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

    u = torch.sigmoid(torch.linspace(-34, 34, 4001, dtype=torch.float64))
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
