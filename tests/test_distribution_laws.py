"""What holds of every distribution of one variable: each law runs on each entry of the registry."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import PNN, QuantizedPNN
from nits.heads import (
    Atoms,
    Categorical,
    Cells,
    CurvedEdges,
    Head,
    Inflated,
    Integer,
    ListedEdges,
)
from nits.heads.distribution import AtomsColumn, ColumnDistribution
from nits.pnn.affine import Affine
from nits.pnn.binned import CellsPNN, IntegerPNN
from nits.pnn.cells import Edges
from nits.pnn.curves import Line, Log, Logit
from nits.pnn.integers import Integers
from pnns import weights

inf, nan = math.inf, math.nan
SMALL = (6, 5)
N = 2


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pnn(low: float, high: float, hidden: tuple[int, ...] = SMALL) -> PNN:
    return PNN(weights(N, hidden=hidden, seed=1), low, high, hidden)


def integers(which: Integers) -> IntegerPNN:
    return IntegerPNN(weights(N, hidden=SMALL, seed=2), which, SMALL)


def cells(edges: Edges) -> CellsPNN:
    return CellsPNN(weights(N, hidden=SMALL, seed=5), edges, SMALL)


def column(head: Head) -> Distribution:
    theta = torch.randn(N, head.weights, generator=seeded(3), dtype=torch.float64)
    return head.distribution(theta, head.low, head.high)


def moved(base: Distribution) -> Affine:
    return Affine(base, torch.tensor([0.3, -2.0]).double(), torch.tensor(1.7).double())


CELLS = Cells(CurvedEdges(7, Line(3.0, 2.0)), SMALL)
DISTRIBUTIONS: dict[str, Callable[[], Distribution]] = {
    "pnn on [a, b]": lambda: pnn(-1.0, 2.0),
    "pnn on [a, ∞)": lambda: pnn(-1.0, inf),
    "pnn on (−∞, b]": lambda: pnn(-inf, 2.0),
    "pnn on the line": lambda: pnn(-inf, inf),
    "pnn of one layer": lambda: pnn(-inf, inf, (7,)),
    "pnn of three layers": lambda: pnn(-inf, inf, (4, 5, 6)),
    "quantized": lambda: QuantizedPNN(weights(N, hidden=SMALL, seed=4), -1.0, 2.0, 12, SMALL),
    "integers": lambda: integers(Integers()),
    "integers 0 … 9": lambda: integers(Integers(0, 9, 4.0, 2.0)),
    "integers from 0": lambda: integers(Integers(0, inf, 2.0, 5.0)),
    "integers up to 7": lambda: integers(Integers(-inf, 7, 2.0, 3.0)),
    "thousands of integers": lambda: integers(Integers(-100, inf, 20.0, 50.0)),
    "thousands in limits": lambda: integers(Integers(0, 12_000, 5000.0, 2000.0)),
    "listed cells": lambda: cells(ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0))),
    "curved cells": lambda: cells(CurvedEdges(40, Log(-1.0, 1, 2.5, 0.8))),
    "thousands of cells": lambda: cells(CurvedEdges(12_001, Logit(-50.0, 1.4e4, 0.0, 1.3))),
    "inflated cells": lambda: column(Inflated(CELLS, (-2, 0, 3, 8))),
    "inflated integers": lambda: column(Inflated(Integer(hidden=SMALL, scale=4.0), (0, 5))),
    "categorical": lambda: column(Categorical(5)),
    "atoms, also at the ends": lambda: column(Atoms((-1.0, 0.5, 2.0), -1.0, 2.0, SMALL)),
    "atoms outside": lambda: column(Atoms((-3.0, 0.5, 2.5), -1.0, 2.0, SMALL)),
    "atoms on the line": lambda: column(Atoms((0.0, 1.0, 4.0), hidden=SMALL)),
    "affine": lambda: moved(pnn(-inf, inf)),
}
every = pytest.mark.parametrize("name", list(DISTRIBUTIONS))


class Known(NamedTuple):
    """A distribution, values with weights w such that Σ w p(x) = 1, and samples; shapes (S, N)."""

    d: Any
    x: Tensor
    p: Tensor  # w p(x)
    log_p: Tensor
    drawn: Tensor


class Quantities(NamedTuple):
    """What is told of each distribution, shapes (N,)."""

    mean: Tensor
    variance: Tensor
    mode: Tensor
    entropy: Tensor


@cache
def told(name: str) -> Quantities:
    return quantities(known(name).d)


def quantities(d: Distribution) -> Quantities:
    return Quantities(d.mean, d.variance, d.mode, d.entropy())


@cache
def known(name: str) -> Known:
    d = DISTRIBUTIONS[name]()
    x, w = rule(d)
    log_p = d.log_prob(x)
    return Known(d, x, w * log_p.exp(), log_p, draw(d, 10_000 // N))


def draw(d: Any, n: int, seed: int = 0) -> Tensor:
    x: Tensor = d.sample((n,), seeded(seed))
    return x


def ends(d: Any) -> tuple[Tensor, Tensor]:
    """The support of each distribution, shapes (N,)."""
    found = (d.support.lower_bound, d.support.upper_bound)
    low, high = (torch.as_tensor(end).double().expand(d.batch_shape) for end in found)
    return low, high


def interval(low: Tensor, high: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Gauss–Legendre between finite ends; else the trapezoid rule in t, where ν(x(t)) dies off."""
    if low.isfinite() and high.isfinite():
        x, w = map(torch.from_numpy, np.polynomial.legendre.leggauss(nodes))
        return (low + high + (high - low) * x) / 2, (high - low) / 2 * w
    t = torch.linspace(-6, 6, nodes, dtype=torch.float64)
    step = t[1] - t[0]
    if low.isinf() and high.isinf():
        return t.sinh(), step * t.cosh()
    away = torch.exp(t - torch.exp(-t))
    weights = step * away * (1 + torch.exp(-t))
    return (low + away, weights) if low.isfinite() else (high - away, weights)


def rule(d: Any) -> tuple[Tensor, Tensor]:
    """Values and weights: all integers that matter, or points that are no quantiles."""
    if isinstance(d, Affine):
        x, w = rule(d.base)
        return d.loc + d.scale * x, d.scale * w
    low, high = ends(d)
    if d.support.is_discrete:
        k = torch.arange(max(low.min().item(), -2000), min(high.max().item(), 12_000) + 1)
        k = k.double().unsqueeze(1).expand(-1, N)
        return k, torch.ones_like(k)
    if isinstance(d, AtomsColumn):
        low, high = d.low, d.high
    nodes = 300 if (low.isfinite() & high.isfinite()).all() else 4000
    rules = [interval(a, b, nodes) for a, b in zip(low, high, strict=True)]
    x, w = (torch.stack(part, 1) for part in zip(*rules, strict=True))
    if isinstance(d, AtomsColumn):
        atoms = d.values.unsqueeze(1).expand(-1, N)
        return torch.cat([atoms, x]), torch.cat([torch.ones_like(atoms), w])
    return x, w


@every
def test_mass_is_one(name: str) -> None:
    mass = known(name).p.sum(0)
    torch.testing.assert_close(mass, torch.ones(N).double(), rtol=0, atol=1e-9)


@every
def test_mean_and_variance_are_those_of_the_probabilities(name: str) -> None:
    (_, x, p, *_), found = known(name), told(name)
    if name == "categorical":  # levels have no order
        assert found.mean.isnan().all()
        assert found.variance.isnan().all()
        return
    mean = (p * x).sum(0)
    variance = (p * (x - mean) ** 2).sum(0)
    assert ((found.mean - mean).abs() < 1e-6 * variance.sqrt()).all()
    torch.testing.assert_close(found.variance, variance, rtol=1e-6, atol=0)


@every
def test_entropy_is_the_mean_surprise(name: str) -> None:
    _, _, p, log_p, _ = known(name)
    expected = -(p * log_p.masked_fill(p == 0, 0)).sum(0)
    torch.testing.assert_close(told(name).entropy, expected, rtol=0, atol=1e-5)


@every
def test_nothing_is_likelier_than_the_mode(name: str) -> None:
    d, _, _, log_p, drawn = known(name)
    mode = told(name).mode
    assert mode.shape == (N,)
    assert d.support.check(mode).all()
    for found in (d.log_prob(drawn), log_p):
        assert (found.amax(0) <= d.log_prob(mode) + 1e-12).all()


@every
def test_cdf_is_the_mass_up_to_a_value(name: str) -> None:
    d, x, p, _, drawn = known(name)
    below = (p * (x <= drawn[:7].unsqueeze(1))).sum(1)
    # A rule for smooth functions is off by a weight where it is cut.
    room = 1e-9 if d.support.is_discrete else 0.02
    torch.testing.assert_close(d.cdf(drawn[:7]), below, rtol=0, atol=room)


@every
def test_the_quantile_is_the_least_value_that_reaches_the_probability(name: str) -> None:
    d = known(name).d
    u = torch.rand(200, N, generator=seeded(), dtype=torch.float64)
    x = d.icdf(u)
    assert (d.cdf(x) >= u - 1e-12).all()
    before = x - 1 if d.support.is_discrete else x - 1e-6 * (1 + x.abs())
    assert (d.cdf(before) < u + 1e-12).all()


@every
def test_samples_have_the_mean_and_are_possible(name: str) -> None:
    """Five standard errors: a false alarm in 2 million."""
    d, _, _, _, x = known(name)
    assert x.shape == (len(x), N)
    assert d.support.check(x).all()
    if name != "categorical":
        mean, variance, *_ = told(name)
        assert ((x.mean(0) - mean).abs() < 5 * (variance / len(x)).sqrt()).all()
    frequency = (x <= x[0]).double().mean(0)
    assert ((frequency - d.cdf(x[0])).abs() < 5 * 0.5 / len(x) ** 0.5).all()
    assert torch.equal(draw(d, 9), draw(d, 9))
    assert not torch.equal(draw(d, 9), draw(d, 9, seed=1))


@every
def test_expanding_repeats_the_distribution(name: str) -> None:
    d, _, _, _, drawn = known(name)
    for shape in ((3, N), (2, 1, N)):
        wide = d.expand(shape)
        assert type(wide) is type(d)
        assert (wide.batch_shape, wide.event_shape) == (shape, ())
        x = drawn[: 4 * math.prod(shape) // N].reshape(4, *shape)
        for function in ("log_prob", "cdf"):
            found, expected = (getattr(one, function)(x) for one in (wide, d))
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
        assert wide.support.check(x).all()
    assert draw(wide, 5).shape == (5, *shape)
    wide = d.expand((1, N))
    torch.testing.assert_close(wide.mean, told(name).mean.unsqueeze(0), equal_nan=True)
    torch.testing.assert_close(wide.entropy(), told(name).entropy.unsqueeze(0))


@every
def test_nan_stays_nan_and_the_impossible_has_no_probability(name: str) -> None:
    d, _, _, _, drawn = known(name)
    x = drawn[0].clone()
    x[0] = nan
    for value in (d.log_prob(x), d.cdf(x), d.icdf(x.clamp(0, 1))):
        assert value.isnan().tolist() == [True, False]
    low, high = ends(d)
    beyond = torch.full_like(low, inf)
    outside = torch.stack([low - 1, high + 1, -beyond, beyond])
    assert (d.log_prob(outside) == -inf).all()
    expected = torch.tensor([0, 1, 0, 1]).double().unsqueeze(1).expand(-1, N)
    torch.testing.assert_close(d.cdf(outside), expected)


@every
def test_integers_are_values_of_discrete_distributions_alone(name: str) -> None:
    d, k = known(name).d, torch.tensor([1, 2])
    for function in (d.log_prob, d.cdf):
        if d.support.is_discrete:
            assert torch.equal(function(k), function(k.double()))
        else:
            with pytest.raises(TypeError, match="x must be float32 or float64, but is int64;"):
                function(k)
    if d.support.is_discrete:
        assert (d.log_prob(k + 0.5) == -inf).all()


@every
def test_continuous_samples_carry_gradients(name: str) -> None:
    d = known(name).d
    assert d.has_rsample is not d.support.is_discrete
    if d.has_rsample:
        again = d.rsample((9,), seeded())
        assert torch.equal(again, draw(d, 9))
    else:
        with pytest.raises(NotImplementedError):
            d.rsample((2,))


@every
def test_what_depends_on_weights_has_gradients(name: str) -> None:
    """Of the entropy, by central differences along a random direction."""
    d = known(name).d
    theta = d.base.theta if isinstance(d, Affine) else d.theta
    step = 1e-5 * torch.randn(theta.shape, generator=seeded(), dtype=torch.float64)

    def entropy(at: Tensor) -> Tensor:
        return with_weights(d, at).entropy()

    theta = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(entropy(theta).sum(), theta)
    with torch.no_grad():
        rise = entropy(theta + step) - entropy(theta - step)
    torch.testing.assert_close(2 * (gradient * step).sum(-1), rise, rtol=1e-3, atol=1e-9)


@every
def test_nan_weights_give_nan(name: str) -> None:
    d = known(name).d
    theta = (d.base.theta if isinstance(d, Affine) else d.theta).clone()
    theta[0] = nan
    broken: Any = with_weights(d, theta)
    for value in (broken.log_prob(known(name).drawn[0]), broken.mode, broken.entropy()):
        assert value.isnan().tolist() == [True, False]


def with_weights(d: Distribution, theta: Tensor) -> Distribution:
    """The same distribution with other weights."""
    match d:
        case Affine():
            return Affine(with_weights(d.base, theta), d.loc, d.scale)
        case PNN():
            return PNN(theta, d.low, d.high, d.hidden)
        case QuantizedPNN():
            return QuantizedPNN(theta, d.base.low, d.base.high, d.bins, d.base.hidden)
        case IntegerPNN():
            return IntegerPNN(theta, d.integers, d.base.hidden)
        case CellsPNN():
            return CellsPNN(theta, d.cells, d.base.hidden)
    assert isinstance(d, ColumnDistribution)
    return d.head.distribution(theta, d.low, d.high)
