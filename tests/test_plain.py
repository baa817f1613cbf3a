"""The plain PNN is the paper's formulas, in 50 digits and for whole batches of columns."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from nits import PNN
from nits.pnn import initial, network
from nits.pnn.plain import LOG_WEIGHT_BOUND, PlainPNN, log_weights, parameters, unpack
from oracle import ExactPNN
from pnns import HIDDEN, every_dtype, every_hidden, every_support, points, weights


def plain_pnn(theta: Tensor, low: float, high: float, hidden: tuple[int, ...]) -> PlainPNN:
    """θ of shape (P, *), and the same support for all."""
    return PlainPNN(theta, theta.new_tensor(low), theta.new_tensor(high), hidden)


@every_hidden
@every_support
def test_values_are_those_of_50_digits(low: float, high: float, hidden: tuple[int, ...]) -> None:
    theta = weights(1, hidden=hidden)[0]
    ours, exact = plain_pnn(theta, low, high, hidden), ExactPNN(theta, low, high, hidden)
    for x, t in [(-0.9, -0.3), (0.1, 1.9), (-1.0, 2.0)]:
        a, b = torch.tensor([x, t], dtype=torch.float64)
        assert ours.F(a).item() == pytest.approx(float(exact.F(x)[0]), rel=1e-14)
        assert ours.slope(a).item() == pytest.approx(float(exact.F(x)[1]), rel=1e-13)
        assert ours.Z().item() == pytest.approx(float(exact.rise()), rel=1e-13)
        assert ours.cdf(b).item() == pytest.approx(exact.cdf(t), rel=1e-13)
        assert ours.log_density(a).item() == pytest.approx(exact.log_prob(x), abs=1e-13)
        assert ours.log_mass(a, b).item() == pytest.approx(exact.log_mass(x, t), abs=1e-12)


@every_support
def test_the_ends_have_no_and_all_probability_and_finite_gradients(low: float, high: float) -> None:
    theta = weights(7).T.requires_grad_()
    ours = plain_pnn(theta, low, high, (16, 16))
    for end, expected in ((ours.low, 0.0), (ours.high, 1.0)):
        cdf = ours.cdf(end)
        torch.testing.assert_close(cdf, torch.full_like(cdf, expected), atol=1e-14, rtol=0)
    both = ours.cdf(ours.high) + ours.log_density(torch.zeros(7).double())
    (gradient,) = torch.autograd.grad(both.sum(), theta)
    assert gradient.isfinite().all()
    assert gradient.any(0).all()


@every_hidden
@every_support
def test_bisection_inverts_the_cdf(low: float, high: float, hidden: tuple[int, ...]) -> None:
    theta = weights(50, hidden=hidden)
    u = torch.rand(50, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    x = plain_pnn(theta.T, low, high, hidden).quantile(u)
    assert ((x >= low) & (x <= high)).all()
    ours = PNN(theta, low, high, hidden)
    torch.testing.assert_close(ours.cdf(x), u, atol=1e-12, rtol=0)
    torch.testing.assert_close(x, ours.icdf(u), rtol=1e-9, atol=1e-9)


def test_a_batch_of_columns_is_its_columns() -> None:
    hidden, n = (5, 4), 6
    theta = weights(3 * n, hidden=hidden).T.unflatten(1, (3, n))  # (P, D, N)
    low = torch.tensor([[-1.0], [-math.inf], [-math.inf]], dtype=torch.float64)
    high = torch.tensor([[2.0], [2.0], [math.inf]], dtype=torch.float64)
    x = points(-1.0, 2.0, (3, n), 1.0)
    whole, exact = PlainPNN(theta, low, high, hidden), network.normalized(theta, low, high, hidden)
    torch.testing.assert_close(whole.log_density(x), network.log_density(exact, x))
    torch.testing.assert_close(whole.cdf(x), network.cdf(exact, x)[0])
    for i in range(3):
        column = PlainPNN(theta[:, i], low[i], high[i], hidden)
        torch.testing.assert_close(
            whole.log_density(x)[i], column.log_density(x[i]), rtol=1e-14, atol=1e-14
        )


def test_one_theta_serves_all_rows() -> None:
    theta, x = weights(1).T, points(-1.0, 2.0, (6,), 1.0)
    shared = plain_pnn(theta, -1.0, 2.0, (16, 16)).log_density(x)
    copied = plain_pnn(theta.expand(-1, 6), -1.0, 2.0, (16, 16)).log_density(x)
    torch.testing.assert_close(shared, copied, rtol=1e-14, atol=0)


def test_without_gradients_nothing_is_recorded() -> None:
    theta, x = weights(4).T.requires_grad_(), torch.zeros(4).double()
    pnn = plain_pnn(theta, -1.0, 2.0, (16, 16))
    with torch.no_grad():
        without, slope = pnn.log_density(x), pnn.slope(x)
    assert not slope.requires_grad
    assert not without.requires_grad
    assert not x.requires_grad
    assert torch.equal(without, pnn.log_density(x))


# The weights.


def test_number_of_parameters() -> None:
    assert [parameters(hidden) for hidden in HIDDEN] == [
        8 + 8 + 8,
        320,
        4 + 4 + 20 + 5 + 30 + 6 + 6,
    ]


@every_hidden
def test_unpacking_puts_every_weight_in_one_place(hidden: tuple[int, ...]) -> None:
    theta = torch.arange(parameters(hidden))
    layers, last = unpack(theta, hidden)
    assert layers[0][0].shape == hidden[:1]
    assert [A.shape for A, _ in layers[1:]] == [(h, below) for below, h in pairwise(hidden)]
    parts = [part.flatten() for layer in layers for part in layer]
    assert torch.cat([*parts, last]).tolist() == theta.tolist()


def test_log_weights_are_bounded_decreasing_and_invertible() -> None:
    A = torch.linspace(-300, 300, 20_001, dtype=torch.float64)
    log_weight = log_weights(A)
    assert log_weight.abs().max() < LOG_WEIGHT_BOUND
    assert (log_weight.diff() < 0).all()
    inner = A.abs() < 200
    torch.testing.assert_close(
        initial.from_log_weights(log_weight)[inner], A[inner], rtol=1e-10, atol=1e-10
    )


def test_log_weights_are_minus_A_within_one_percent_up_to_2_8() -> None:
    A = torch.linspace(-2.8, 2.8, 101, dtype=torch.float64)
    torch.testing.assert_close(log_weights(A), -A, rtol=0.01, atol=1e-12)


@every_dtype
def test_weights_stay_in_range_for_any_theta(dtype: torch.dtype) -> None:
    A = torch.tensor([-1e15, 1e15, 0.0], dtype=dtype)
    W = torch.exp(log_weights(A))
    torch.testing.assert_close(
        W, torch.exp(torch.tensor([20.0, -20.0, 0.0], dtype=dtype)), rtol=1e-5, atol=0
    )
