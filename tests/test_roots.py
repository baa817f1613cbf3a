"""Quantiles: round trips, few evaluations, implicit gradients, and hard cases."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from nits import PNN
from nits.pnn import initial, network, roots
from pnns import SUPPORTS, every_dtype, every_hidden, every_scale, every_support, weights

inf = math.inf


def probabilities(dtype: torch.dtype, n: int) -> Tensor:
    """From 1e-6 to 1 − 1e-6, dense at both ends, shape (21, n)."""
    u = torch.sigmoid(torch.linspace(math.log(1e-6), -math.log(1e-6), 21, dtype=torch.float64))
    return u.clamp(1e-6, 1 - 1e-6).to(dtype)[:, None].expand(21, n)


def spacing(x: Tensor) -> Tensor:
    return torch.finfo(x.dtype).eps * x.abs()


def room(d: PNN, x: Tensor) -> Tensor:
    """Returns how far from u the best x of its dtype may leave N(x), for random θ of order one.

    No solver avoids half the spacing of x, times ν(x), nor the rounding of N itself. A unit of the
    last layer reads z as a sum that starts at the nearer of its ends, up to D/2 away: z is off by
    about ε D/2, and σ′ ≤ ¼ makes that ε D/8 of N. With 16 weights e^N(0, 1), D is 26 on average and
    up to 160 in 10,000 PNNs, so that in float32 4e-7 would be usual and 2.4e-6 possible if all
    units were rounded one way; the most in 840,000 roots is 6.4e-7. In float64 the last Newton step
    leaves more than rounding does, up to 2.4e-13.
    """
    rounding = 1e-6 if x.dtype == torch.float32 else 1e-12
    return rounding + d.log_prob(x).exp() * spacing(x) / 2


@pytest.mark.parametrize("n", [200, pytest.param(10_000, marks=pytest.mark.slow)])
@every_dtype
@every_support
def test_cdf_of_the_quantile_is_the_probability(
    low: float, high: float, dtype: torch.dtype, n: int
) -> None:
    for theta in weights(n).to(dtype).split(1000):
        d, u = PNN(theta, low, high), probabilities(dtype, len(theta))
        x = d.icdf(u)
        assert ((d.cdf(x) - u).abs() <= room(d, x)).all()


@every_hidden
@every_support
def test_quantile_of_the_cdf_is_the_point(low: float, high: float, hidden: tuple[int, ...]) -> None:
    d = PNN(weights(20, hidden=hidden), low, high, hidden)
    x = torch.linspace(-0.9, 1.9, 30, dtype=torch.float64)[:, None].expand(30, 20)
    # N(x) is found to 1e-12, and that is x to 1e-12 over the density.
    room = 1e-12 + 1e-12 / d.log_prob(x).exp()
    assert ((d.icdf(d.cdf(x)) - x).abs() < room).all()


@every_dtype
@every_support
def test_small_probabilities_keep_their_digits(low: float, high: float, dtype: torch.dtype) -> None:
    u = torch.logspace(-30, -1, 30, dtype=dtype)[:, None].expand(30, 50)
    d = PNN(weights(50).to(dtype), low, high)
    x = d.icdf(u)
    inside = (x > low) if math.isfinite(low) else torch.ones_like(x, dtype=torch.bool)
    room = 2e-5 if dtype == torch.float32 else 1e-11
    steep = d.log_prob(x).exp() * spacing(x) * 2
    assert ((d.cdf(x) - u).abs() <= room * u + steep)[inside].all()


@every_dtype
@every_scale
@every_support
def test_quantiles_of_wild_weights_are_inside_the_support(
    low: float, high: float, scale: int, dtype: torch.dtype
) -> None:
    d = PNN(weights(25, scale).to(dtype), low, high)
    x = d.icdf(probabilities(dtype, 25))
    assert torch.isfinite(x).all()
    assert ((x >= low) & (x <= high)).all()


@every_support
def test_quantiles_of_steep_weights_are_right_to_rounding_of_x(low: float, high: float) -> None:
    # N jumps within the spacing of x here, so N(x) = u cannot be had; u must lie inside the jump.
    d, u = PNN(weights(80, 10), low, high), probabilities(torch.float64, 80)
    x = d.icdf(u)
    step = 100 * spacing(x)
    assert (d.cdf(x - step) <= u + 1e-12).all()
    assert (d.cdf(x + step) >= u - 1e-12).all()


@every_dtype
def test_a_gap_between_two_spikes(dtype: torch.dtype) -> None:
    # On the plateau at ½ the density underflows, so a Newton step could leap anywhere.
    A = initial.from_log_weights(torch.log(torch.tensor([1e4, 1e4], dtype=torch.float64)))
    theta = torch.cat([A, torch.tensor([-5.0, 5.0, 0.0, 0.0], dtype=torch.float64)]).to(dtype)
    u = torch.tensor([1e-4, 0.25, 0.4999, 0.5001, 0.75, 0.9999], dtype=dtype)
    x = PNN(theta, -inf, inf, hidden=(2,)).icdf(u)
    expected = torch.tensor([-5.0, -5, -5, 5, 5, 5], dtype=dtype)
    torch.testing.assert_close(x, expected, atol=2e-3, rtol=0)
    plateau = PNN(theta, -inf, inf, hidden=(2,)).icdf(torch.tensor(0.5, dtype=dtype))
    assert -5.01 < plateau < 5.01


@every_support
def test_probabilities_zero_and_one_are_the_ends(low: float, high: float) -> None:
    d = PNN(weights(3), low, high)
    assert d.icdf(torch.zeros(3).double()).tolist() == [low] * 3
    assert d.icdf(torch.ones(3).double()).tolist() == [high] * 3


def test_nan_gives_nan_and_leaves_the_others_alone() -> None:
    d = PNN(weights(1)[0], -inf, inf)
    u = torch.tensor([0.2, math.nan, 0.7], dtype=torch.float64)
    x = d.icdf(u)
    assert torch.isnan(x).tolist() == [False, True, False]
    torch.testing.assert_close(x[[0, 2]], d.icdf(u[[0, 2]]), rtol=1e-14, atol=0)


def test_a_batch_of_one_is_a_row_of_a_batch() -> None:
    theta, u = (
        weights(40, 3),
        torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
    together = PNN(theta, -1.0, inf).icdf(u)
    alone = torch.stack([PNN(theta[i], -1.0, inf).icdf(u[i]) for i in range(40)])
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


@every_support
def test_gradients_by_finite_differences(low: float, high: float) -> None:
    hidden = (3, 2)
    theta = weights(2, hidden=hidden, seed=7).requires_grad_()
    ends = tuple(torch.full((2,), end, dtype=torch.float64) for end in (low, high))
    finite = [end.requires_grad_() for end in ends if torch.isfinite(end).all()]
    u = torch.tensor([[0.1, 0.4], [0.5, 0.93]], dtype=torch.float64, requires_grad=True)

    def quantile(*inputs: Tensor) -> Tensor:
        return PNN(theta, ends[0], ends[1], hidden).icdf(u)

    assert gradcheck(quantile, (theta, u, *finite), eps=1e-7, atol=1e-6, fast_mode=True)


@every_dtype
@every_scale
@every_support
def test_gradients_are_finite(low: float, high: float, scale: int, dtype: torch.dtype) -> None:
    theta = weights(50, scale).to(dtype).requires_grad_()
    x = PNN(theta, low, high).rsample((4,), torch.Generator().manual_seed(2))
    (grad,) = torch.autograd.grad(x.sum(), theta)
    assert not torch.isnan(grad).any()


@every_hidden
@every_scale
@every_support
def test_bracket_holds_the_root(
    low: float, high: float, scale: int, hidden: tuple[int, ...]
) -> None:
    d, u = PNN(weights(100, scale, hidden), low, high, hidden), probabilities(torch.float64, 100)
    left, right = roots.bracket(d.frame, torch.logit(u).T)
    assert torch.isfinite(left).all()
    assert torch.isfinite(right).all()
    # Steep units magnify rounding, here by up to e²⁰.
    assert (d.cdf(left.T) <= u + 1e-6).all()
    assert (d.cdf(right.T) >= u - 1e-6).all()


class Count:
    """Counts the points at which F is evaluated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.points = 0
        for name in ("cdf", "cdf_and_density", "log_density"):
            monkeypatch.setattr(network, name, self._counted(getattr(network, name)))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(at: network.Normalized, x: Tensor) -> Any:
            self.points += x.numel()
            return function(at, x)

        return counted


def bisection(d: PNN, u: Tensor, tolerance: float) -> int:
    """Returns how many evaluations of N bisection needs for each quantile, to a tolerance in N."""
    left, right = d.low.expand_as(u), d.high.expand_as(u)
    open_, evaluations = torch.ones_like(u, dtype=torch.bool), 0
    for _ in range(60):  # then the bracket is as narrow as float64 has it
        evaluations += int(open_.sum())
        middle = (left + right) / 2
        error = d.cdf(middle) - u
        left, right = torch.where(error < 0, middle, left), torch.where(error < 0, right, middle)
        open_ = open_ & (error.abs() > tolerance)
    return evaluations


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (-30.0, 30.0)])
def test_a_third_of_the_evaluations_of_bisection(
    low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    d, u = PNN(weights(100), low, high), probabilities(torch.float64, 100)
    count = Count(monkeypatch)
    x = d.icdf(u)
    ours = count.points
    error = (d.cdf(x) - u).abs().max().item()
    assert error <= 1e-12
    assert bisection(d, u, max(error, 1e-14)) >= 3 * ours


def both(
    theta: Tensor, x: Tensor, u: Tensor, support: tuple[Tensor, Tensor] | tuple[float, float]
) -> tuple[Tensor, Tensor]:
    d = PNN(theta, support[0], support[1], (3, 2))
    return d.log_prob(x), d.icdf(u)


@pytest.mark.parametrize("support", ["[a, b]", "(−∞, ∞)"])
def test_log_prob_and_icdf_trace_without_a_graph_break(
    support: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One step is traced like the next, so two will do.
    monkeypatch.setattr(roots, "COMPILED_STEPS", dict.fromkeys(roots.COMPILED_STEPS, 2))
    theta, x = weights(8, hidden=(3, 2)).float(), torch.linspace(-0.9, 1.9, 8)
    traced = torch.compile(both, fullgraph=True, backend="eager")
    log_prob, quantile = traced(theta, x, (x + 1) / 3, SUPPORTS[support])
    torch.testing.assert_close(log_prob, both(theta, x, (x + 1) / 3, SUPPORTS[support])[0])
    assert torch.isfinite(quantile).all()


@pytest.mark.slow
def test_compiled_log_prob_and_icdf_are_the_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    # Seven steps are enough for small networks, of which every other one has an infinite support.
    monkeypatch.setattr(roots, "COMPILED_STEPS", {torch.float32: 7})
    theta, x, u = (
        weights(64, hidden=(3, 2)).float(),
        torch.linspace(-0.9, 1.9, 64),
        torch.linspace(0.01, 0.99, 64),
    )
    finite = torch.arange(64) % 2 == 0
    low, high = (torch.where(finite, end, end * inf) for end in (-1.0, 2.0))
    log_prob, quantile = torch.compile(both, fullgraph=True)(theta, x, u, (low, high))
    d = PNN(theta, low, high, (3, 2))
    torch.testing.assert_close(log_prob, d.log_prob(x), rtol=1e-4, atol=1e-4)
    assert ((d.cdf(quantile) - u).abs() <= room(d, quantile)).all()


@every_dtype
def test_compiled_steps_are_enough(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the compiled graph computes, run eagerly: a fixed number of steps for every root.
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for low, high in SUPPORTS.values():
        d, u = PNN(weights(80).to(dtype), low, high), probabilities(dtype, 80)
        x = d.icdf(u)
        assert ((d.cdf(x) - u).abs() <= room(d, x)).all()
