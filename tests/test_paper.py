"""The paper's statements, numerically: each theorem is a test."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats
from torch import Tensor

from nits import PNN, pnn_parameters
from nits.pnn import initial
from nits.pnn.initial import from_quantiles
from pnns import every_hidden, every_support, weights

inf = math.inf
FALSE_ALARM = 1e-6


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Lemma 1: the slope is positive.


@every_hidden
@every_support
def test_the_slope_is_positive(low: float, high: float, hidden: tuple[int, ...]) -> None:
    d = PNN(weights(1000, hidden=hidden), low, high, hidden)
    x = d.icdf(torch.rand(1000, generator=seeded(), dtype=torch.float64))
    assert (d.log_prob(x) > -inf).all()
    step = 1e-3 * (1 + x.abs())
    x = x.clamp(max=high - 0.01) if math.isfinite(high) else x
    assert (d.log_mass(x, x + step) > -inf).all()
    assert (d.cdf(x + step) > d.cdf(x)).all()


# Inverse transform theorem: F⁻¹(U) has the distribution function F.


@every_support
def test_samples_pass_a_kolmogorov_smirnov_test(low: float, high: float) -> None:
    d = PNN(weights(1)[0], low, high)
    x = d.sample((10_000,), seeded())
    assert (
        stats.kstest(x.numpy(), lambda at: d.cdf(torch.as_tensor(at)).numpy()).pvalue > FALSE_ALARM
    )


@every_support
def test_cdf_of_samples_is_uniform_on_both_sides(low: float, high: float) -> None:
    d = PNN(weights(1, seed=1)[0], low, high)
    x = d.sample((10_000,), seeded(1))
    for share in (d.cdf(x), d.survival(x)):
        assert stats.kstest(share.numpy(), "uniform").pvalue > FALSE_ALARM


def test_samples_of_another_density_do_not_pass() -> None:
    one, other = (PNN(theta, -1.0, 2.0) for theta in weights(2))
    share = one.cdf(other.sample((5000,), seeded()))
    assert stats.kstest(share.numpy(), "uniform").pvalue < FALSE_ALARM


# Gradient theorem, for a PNN whose weights depend on a condition.


@every_support
def test_the_integral_of_the_slope_is_the_difference_of_F(low: float, high: float) -> None:
    weight_model = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, pnn_parameters((16, 16)))
    ).double()
    with torch.no_grad():
        for parameter, values in zip(
            weight_model.parameters(), weights(4, hidden=(200,)), strict=True
        ):
            parameter.copy_(values.repeat(20)[: parameter.numel()].reshape(parameter.shape))
        for condition in torch.randn(2, 2, generator=seeded(), dtype=torch.float64):
            d = PNN(weight_model(condition), low, high)
            s, t = (torch.tensor(end).double() for end in (-0.8, 1.7))
            knots = torch.linspace(-0.8, 1.7, 11).tolist()
            parts = [
                integrate.quad(
                    lambda x, d=d: d.log_prob(torch.tensor(x).double()).exp().item(), a, b
                )[0]
                for a, b in pairwise(knots)
            ]
            assert sum(parts) == pytest.approx(d.log_mass(s, t).exp().item(), abs=1e-7)
            assert sum(parts) == pytest.approx((d.cdf(t) - d.cdf(s)).item(), abs=1e-7)


# One hidden layer on a widening support: a mixture of logistics.


def mixture() -> tuple[Tensor, np.ndarray, np.ndarray, np.ndarray]:
    """θ of a one-layer PNN, and the centres, scales and weights of the mixture it stands for."""
    centres, scales = (
        torch.tensor([-2.0, 0.0, 0.5, 3.0]).double(),
        torch.tensor([0.3, 1.0, 0.1, 0.7]).double(),
    )
    logits = torch.tensor([0.1, 0.7, -0.5, 0.3]).double()
    theta = torch.cat([initial.from_log_weights(-torch.log(scales)), centres, logits])
    return theta, centres.numpy(), scales.numpy(), torch.softmax(logits, 0).numpy()


def distance(half_width: float) -> tuple[float, float]:
    """Returns the greatest distance of cdf and density from the mixture's, on [−6, 6]."""
    theta, centres, scales, shares = mixture()
    d = PNN(theta, -half_width, half_width, hidden=(4,))
    x = torch.linspace(-6, 6, 500, dtype=torch.float64)
    z = (x.numpy()[:, None] - centres) / scales
    cdf = special.expit(z) @ shares
    density = (special.expit(z) * special.expit(-z) / scales) @ shares
    gaps = (d.cdf(x).numpy() - cdf, d.log_prob(x).exp().numpy() - density)
    return float(np.abs(gaps[0]).max()), float(np.abs(gaps[1]).max())


def test_one_hidden_layer_tends_to_the_mixture_of_logistics() -> None:
    cdf, density = zip(*(distance(w) for w in (6.0, 9.0, 12.0, 18.0, 60.0)), strict=True)
    assert list(cdf) == sorted(cdf, reverse=True)
    assert list(density) == sorted(density, reverse=True)
    # What is cut off decays like the tail of the widest unit, e^(−w/1).
    assert cdf[2] / cdf[1] == pytest.approx(math.exp(-3), rel=0.5)
    assert max(cdf[-1], density[-1]) < 1e-14


def test_on_the_whole_line_it_is_the_mixture_of_logistics() -> None:
    assert max(distance(inf)) < 1e-14


# Universality: the sup-distance to a hard target falls as the width grows.


def hard_target(x: Tensor) -> Tensor:
    """A spike of mass 0.3 at −1; uniform masses of 0.4 on [0, 1] and 0.3 on [2, 2.2]."""
    spike = 0.3 * torch.sigmoid((x + 1) / 1e-3)
    return spike + 0.4 * x.clamp(0, 1) + 0.3 * ((x - 2) / 0.2).clamp(0, 1)


def universal(width: int) -> PNN:
    """The network of the existence proof: steps at the target's quantiles, steeper where closer."""
    x = torch.linspace(-1.5, 2.5, 400_001, dtype=torch.float64)
    levels = (torch.arange(width).double() + 0.5) / width
    centres = x[torch.searchsorted(hard_target(x), levels)]
    gaps = centres.diff()
    scales = (
        torch.minimum(torch.cat([gaps[:1], gaps]), torch.cat([gaps, gaps[-1:]])).clamp_min(1e-7) / 3
    )
    theta = torch.cat(
        [initial.from_log_weights(-torch.log(scales)), centres, torch.zeros(width).double()]
    )
    return PNN(theta, -1.5, 2.5, hidden=(width,))


def sup_distance(d: PNN) -> float:
    x = torch.cat([torch.linspace(-1.5, 2.5, 4001), torch.linspace(-1.01, -0.99, 401)]).double()
    return float((d.cdf(x) - hard_target(x)).abs().max())


def test_the_sup_distance_to_a_hard_target_falls_as_the_width_grows() -> None:
    widths = (4, 8, 16, 32, 64, 128, 256, 512)
    distances = [sup_distance(universal(width)) for width in widths]
    assert distances == sorted(distances, reverse=True)
    # A staircase of h steps is within 1/h of a distribution function.
    assert all(gap < 1 / width for gap, width in zip(distances, widths, strict=True))


def fitted(hidden: tuple[int, ...]) -> float:
    """Returns the mean distance to the target of a PNN trained by least squares from its quantiles.

    The rate falls to zero: at a constant one the spike keeps throwing the weights about, and where
    they are after the last step is chance.
    """
    x = torch.cat([torch.linspace(-1.49, 2.49, 160), torch.linspace(-1.01, -0.99, 40)]).double()
    target = hard_target(x)
    levels = torch.linspace(0.001, 0.999, 2000).double()
    sample = x[torch.searchsorted(target[:160].contiguous(), levels).clamp_max(159)]
    theta = from_quantiles(sample, hidden).requires_grad_()
    optimizer = torch.optim.Adam([theta], lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 150)
    for _ in range(150):
        optimizer.zero_grad()
        ((PNN(theta, -1.5, 2.5, hidden).cdf(x) - target) ** 2).mean().backward()
        optimizer.step()
        schedule.step()
    return float((PNN(theta.detach(), -1.5, 2.5, hidden).cdf(x) - target).abs().mean())


def test_training_gets_nearer_with_width_and_depth() -> None:
    distances = [fitted(hidden) for hidden in ((2,), (8,), (16, 16))]
    # Each is four times as near as the one before, or more. Untrained they are ordered too, but
    # within a factor of 1.5.
    assert all(near < far / 3 for far, near in pairwise(distances)), distances
