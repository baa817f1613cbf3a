"""The exact recursion: mass one, agreement with the plain PNN, precision, and no NaN."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from nits import PNN, QuantizedPNN
from nits.pnn import initial, network
from nits.pnn.plain import PlainPNN
from oracle import ExactPNN
from pnns import (
    SUPPORTS,
    every_dtype,
    every_hidden,
    every_scale,
    every_support,
    few_and_many,
    points,
    weights,
)

inf = math.inf


def pieces(
    low: float, high: float, shape: tuple[int, int], scale: float, dtype: torch.dtype
) -> Tensor:
    """Edges of a random partition of the support, increasing down the first dimension."""
    inner = points(low, high, shape, scale).to(dtype).sort(0).values
    ends = [torch.full((1, shape[1]), end, dtype=dtype) for end in (low, high)]
    return torch.cat([ends[0], inner, ends[1]])


def total(mass: Tensor) -> Tensor:
    return mass.double().sum(0)


# Mass one.


@few_and_many
@every_dtype
@every_scale
@every_support
def test_mass_over_the_support_is_one(
    low: float, high: float, scale: int, dtype: torch.dtype, n: int
) -> None:
    d = PNN(weights(n, scale).to(dtype), low, high)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(
        d.log_mass(d.low, d.high).double().exp(), torch.ones(n).double(), atol=tolerance, rtol=0
    )


@few_and_many
@every_dtype
@every_scale
@every_support
def test_probabilities_below_and_above_any_point_add_up_to_one(
    low: float, high: float, scale: int, dtype: torch.dtype, n: int
) -> None:
    d, x = PNN(weights(n, scale).to(dtype), low, high), points(low, high, (8, n), scale).to(dtype)
    below, above = d.cdf(x), d.survival(x)
    assert below.min() >= 0
    assert above.min() >= 0
    error = (below.double() + above.double() - 1).abs().max()
    assert error < (1e-6 if dtype == torch.float32 else 1e-12)


@few_and_many
@every_dtype
@every_scale
@every_support
def test_masses_of_the_pieces_of_a_partition_add_up_to_one(
    low: float, high: float, scale: int, dtype: torch.dtype, n: int
) -> None:
    edges = pieces(low, high, (8, n), scale, dtype)
    mass = (
        PNN(weights(n, scale).to(dtype), low, high).log_mass(edges[:-1], edges[1:]).double().exp()
    )
    # Nine rounded numbers are added: the figure for a pmf holds.
    assert (total(mass) - 1).abs().max() < (1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.slow)])
@every_dtype
@every_scale
def test_pmf_of_256_bins_sums_to_one(scale: int, dtype: torch.dtype, n: int) -> None:
    for theta in weights(n, scale).to(dtype).split(100):
        pmf = QuantizedPNN(theta, -1.0, 2.0, 256).probs.double()
        assert (pmf.sum(-1) - 1).abs().max() < (1e-5 if dtype == torch.float32 else 1e-12)


@every_support
def test_cdf_increases_from_zero_to_one(low: float, high: float) -> None:
    x = pieces(low, high, (200, 20), 1.0, torch.float64)
    cdf = PNN(weights(20), low, high).cdf(x)
    assert (cdf[0] == 0).all()
    torch.testing.assert_close(cdf[-1], torch.ones(20).double(), atol=1e-15, rtol=0)
    assert (cdf.diff(dim=0) >= -2e-16).all()  # one unit in the last place of 1


# Agreement with the plain PNN and with 50 digits.


@every_hidden
@every_support
def test_values_and_gradients_are_those_of_the_plain_pnn(
    low: float, high: float, hidden: tuple[int, ...]
) -> None:
    theta = weights(5, hidden=hidden).requires_grad_()
    a, b = (torch.full((5,), end, dtype=torch.float64, requires_grad=True) for end in (low, high))
    x, t = (points(-1.0, 2.0, (5,), 1.0, seed).requires_grad_() for seed in (3, 4))
    s, t = torch.minimum(x, t), torch.maximum(x, t)
    ours, plain = PNN(theta, a, b, hidden), PlainPNN(theta.T, a, b, hidden)
    for value, expected in [
        (ours.cdf(x), plain.cdf(x)),
        (ours.log_prob(x), plain.log_density(x)),
        (ours.log_mass(s, t), plain.log_mass(s, t)),
    ]:
        torch.testing.assert_close(value, expected, atol=1e-11, rtol=1e-11)
        grads, expected_grads = (
            torch.autograd.grad(f.sum(), (theta, x, a, b), retain_graph=True)
            for f in (value, expected)
        )
        for grad, expected_grad in zip(grads, expected_grads, strict=True):
            torch.testing.assert_close(grad, expected_grad, atol=1e-9, rtol=1e-9)


@every_hidden
def test_cdf_and_density_come_together_or_alone(hidden: tuple[int, ...]) -> None:
    at = PNN(weights(20, hidden=hidden), -1.0, 2.0, hidden).frame
    x = torch.linspace(-0.9, 1.9, 15, dtype=torch.float64).expand(20, 15)
    together = network.cdf_and_density(at, x)
    alone = (*network.cdf(at, x), network.log_density(at, x).exp())
    for value, expected in zip(together, alone, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)


@every_hidden
@every_dtype
@every_support
def test_everything_is_as_precise_as_its_dtype(
    low: float, high: float, dtype: torch.dtype, hidden: tuple[int, ...]
) -> None:
    # Relative precision of a probability is absolute precision of its logarithm.
    theta = weights(1, hidden=hidden)[0].to(dtype)
    ours, exact = PNN(theta, low, high, hidden), ExactPNN(theta, low, high, hidden)
    tolerance = 2e-5 if dtype == torch.float32 else 5e-14
    for number in (max(low, -40.0) + 1e-3, -0.5, 0.7, min(high, 40.0) - 1e-3):
        x = torch.tensor(number, dtype=dtype)
        at = x.item()
        assert ours.log_prob(x).item() == pytest.approx(exact.log_prob(at), abs=tolerance)
        assert ours.cdf(x).item() == pytest.approx(exact.cdf(at), rel=tolerance)
        assert ours.survival(x).item() == pytest.approx(exact.survival(at), rel=tolerance)


@every_dtype
@pytest.mark.parametrize(
    ("low", "high"),
    [*SUPPORTS.values(), (-300.0, 300.0), (-1e6, 1e6)],
    ids=[*SUPPORTS, "wide", "very wide"],
)
def test_mass_of_a_narrow_bin_keeps_its_digits_in_the_tails(
    low: float, high: float, dtype: torch.dtype
) -> None:
    theta = weights(1, seed=5).to(dtype)
    for start in (-60.0, -8.0, -0.99, 0.5, 1.99, 8.0, 60.0):
        s = torch.tensor(start, dtype=dtype)
        # Next to ±60 the numbers of float32 are 4e-6 apart: the next one is the narrowest bin there
        # is.
        t = torch.maximum(s + 1e-6, torch.nextafter(s, torch.tensor(inf, dtype=dtype)))
        if s < low or t > high:
            continue
        for row in theta:
            expected = ExactPNN(row, low, high).log_mass(s.item(), t.item())
            got = PNN(row, low, high).log_mass(s, t).item()
            assert math.expm1(got - expected) == pytest.approx(
                0, abs=1e-4 if dtype == torch.float32 else 1e-12
            )


def test_small_weights_cost_no_digits_of_a_mass() -> None:
    # Sums of weights e⁻¹⁸ are divided; their logarithms, −15, would each be rounded at 1e-6.
    theta = weights(100).float()
    theta[:, 32:-16] = initial.from_log_weights(theta[:, 32:-16].clamp(-2, 2) / 4 - 18)
    ours, double = PNN(theta, -1.0, 2.0), PNN(theta.double(), -1.0, 2.0)
    x = torch.linspace(-0.9, 1.9, 15)[:, None].expand(15, 100)
    error = ours.log_mass(ours.low, x) - double.log_mass(double.low, x.double())
    assert error.abs().max() < 1e-6


def test_one_wide_interval_does_not_spoil_a_deep_and_flat_network() -> None:
    # Rises of 1e-9 a layer: σ(z_B) − σ(z_A) is far under the rounding of σ itself.
    hidden = (4, 4, 4)
    theta = weights(1, hidden=hidden)[0]
    theta[:4] += 15.0
    theta = theta.float()
    ours, exact = PNN(theta, -1.0, 2.0, hidden), ExactPNN(theta, -1.0, 2.0, hidden, digits=120)
    for number in (-0.9, 0.1, 1.9):
        x = torch.tensor(number)
        assert ours.log_prob(x).item() == pytest.approx(exact.log_prob(x.item()), abs=1e-5)
        assert ours.cdf(x).item() == pytest.approx(exact.cdf(x.item()), rel=1e-5)


def test_neighbouring_pieces_agree_with_the_whole() -> None:
    d, s, t = PNN(weights(50), -1.0, 2.0), torch.tensor(0.1).double(), torch.tensor(0.3).double()
    middle = (s + t) / 2
    halves = torch.logaddexp(d.log_mass(s, middle), d.log_mass(middle, t))
    torch.testing.assert_close(halves, d.log_mass(s, t), atol=1e-12, rtol=0)


# Finite values and gradients, whatever θ.


def finite_gradients(value: Tensor, inputs: list[Tensor]) -> bool:
    finite = value[torch.isfinite(value)].sum()
    grads = torch.autograd.grad(finite, inputs, retain_graph=True, allow_unused=True)
    return all(grad is None or bool(torch.isfinite(grad).all()) for grad in grads)


@few_and_many
@every_dtype
@every_scale
@every_support
def test_no_value_and_no_gradient_is_lost(
    low: float, high: float, scale: int, dtype: torch.dtype, n: int
) -> None:
    theta = weights(n, scale).to(dtype).requires_grad_()
    low_end, high_end = (
        torch.full((n,), end, dtype=dtype, requires_grad=True) for end in (low, high)
    )
    edges = pieces(low, high, (6, n), scale, dtype)
    x = edges[1:-1].clone().requires_grad_()
    edges = torch.cat([low_end[None], x, high_end[None]])
    ours = PNN(theta, low_end, high_end)
    double = PNN(theta.detach().double(), low_end.detach().double(), high_end.detach().double())
    y, wide = x.detach().double(), edges.detach().double()
    for value, reference in [
        (ours.log_prob(x), double.log_prob(y)),
        (ours.cdf(x), double.cdf(y)),
        (ours.log_mass(edges[:-1], edges[1:]), double.log_mass(wide[:-1], wide[1:])),
    ]:
        assert not torch.isnan(value).any()
        assert (value < inf).all()
        assert torch.isfinite(value[torch.isfinite(reference)]).all()
        assert finite_gradients(value, [theta, x, low_end, high_end])


@every_dtype
def test_gradients_survive_the_ends_of_the_support_and_empty_intervals(dtype: torch.dtype) -> None:
    theta = weights(20).to(dtype).requires_grad_()
    low, high = (torch.full((20,), end, dtype=dtype, requires_grad=True) for end in (-1.0, 2.0))
    d, inputs = PNN(theta, low, high), [theta, low, high]
    for x in (d.low, d.high):
        assert finite_gradients(d.log_prob(x), inputs)
        assert finite_gradients(d.cdf(x), inputs)
    empty = d.log_mass(d.low, d.low)
    assert (empty == -inf).all()
    assert finite_gradients(torch.cat([empty, d.log_mass(d.low, d.high)]), inputs)


@every_support
def test_gradients_by_finite_differences(low: float, high: float) -> None:
    hidden = (3, 2)
    theta = weights(2, hidden=hidden, seed=7).requires_grad_()
    ends = tuple(torch.full((2,), end, dtype=torch.float64) for end in (low, high))
    finite = [end.requires_grad_() for end in ends if torch.isfinite(end).all()]
    x, t = (
        torch.tensor(pair, dtype=torch.float64, requires_grad=True)
        for pair in ([-0.5, 0.4], [0.6, 1.9])
    )

    def check(function: Callable[[PNN], Tensor], *at: Tensor) -> None:
        def value(*inputs: Tensor) -> Tensor:
            return function(PNN(theta, ends[0], ends[1], hidden))

        assert gradcheck(value, (theta, *at, *finite), eps=1e-7, atol=1e-6, fast_mode=True)

    check(lambda d: d.log_prob(x), x)
    check(lambda d: d.cdf(x), x)
    check(lambda d: d.survival(x), x)
    check(lambda d: d.log_mass(x, t), x, t)
