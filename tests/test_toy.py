"""The toy densities: mass one, samples that follow the log-density, an independent formula each."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from nits.datasets import normal, toy

Array = Any  # NumPy arrays; scipy, which makes them here, is published without types
every = pytest.mark.parametrize("truth", list(toy.DENSITIES.values()), ids=list(toy.DENSITIES))
to_three = pytest.mark.parametrize("name", ["moons", "ring", "checkerboard", "mixture"])
above_three = pytest.mark.parametrize("name", ["student", "funnel", "chain", "copula"])

# The same densities with fewer columns: what is left when the last ones are integrated out.
FAMILIES: dict[str, Callable[[int], toy.Density]] = {
    "student": lambda d: toy.StudentT("student", normal.markov_factor(-0.7, d)),
    "funnel": lambda d: toy.Funnel("funnel", d),
    "chain": lambda d: toy.LogisticChain("chain", d),
    "copula": lambda d: toy.GaussianCopula("copula", normal.markov_factor(0.6, d)),
}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(truth: toy.Density, seed: int, n: int) -> Tensor:
    return truth.sample(n, seeded(seed), dtype=torch.float64)


# Mass and samples, up to three columns by quadrature on a grid.


def grid(truth: toy.Density) -> tuple[Tensor, Tensor]:
    """Nodes x and weights w, Σ w f(x) ≈ ∫ f p: midpoint rule on the support, or on [−6, 6]^D."""
    n = {2: 160, 3: 60}[truth.dimension]
    low, high = truth.low.clamp(min=-6), truth.high.clamp(max=6)
    middles = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    x = torch.cartesian_prod(*(a + (b - a) * middles for a, b in zip(low, high, strict=True)))
    return x, truth.log_prob(x).exp() * (high - low).prod() / len(x)


@to_three
def test_mass_is_one(name: str) -> None:
    # p is smooth and n points a side resolve it: what is left is the mass beyond ±6, below 1e−5.
    _, weights = grid(toy.density(name))
    assert weights.sum().item() == pytest.approx(1, abs=1e-5)


@to_three
def test_samples_have_the_characteristic_function_of_the_density(name: str) -> None:
    # E cos ω·x and E sin ω·x at 40 frequencies, |z| < 5: false alarm 6e−7 each. 1e−4 is for the
    # quadrature.
    truth, n = toy.density(name), 100_000
    x, weights = grid(truth)
    y = rows(truth, 2, n)
    omega = (
        4
        * torch.randn(truth.dimension, 40, generator=seeded(1), dtype=torch.float64)
        / y.std(0)[:, None]
    )
    for wave in (torch.cos, torch.sin):
        seen = wave(y @ omega)
        error = (seen.mean(0) - weights @ wave(x @ omega)).abs()
        assert (error < 5 * seen.std(0) / math.sqrt(n) + 1e-4).all()


# Mass and samples, above three columns by one column at a time.


def line(low: float, high: float) -> tuple[Tensor, Tensor]:
    """Nodes and weights of ∫ dx on an interval: trapezoidal in y, x = sinh y, exp y or σ(y)."""
    y = torch.linspace(-30, 30, 3001, dtype=torch.float64)
    if math.isinf(low):
        return y.sinh(), y.cosh() * 0.02
    if math.isinf(high):
        return y.exp(), y.exp() * 0.02
    return y.sigmoid(), y.sigmoid() * (-y).sigmoid() * 0.02


@above_three
def test_integrating_out_the_last_column_leaves_the_density_of_the_others(name: str) -> None:
    # ∫ p_d(x_1 … x_d) dx_d = p_{d−1}(x_1 … x_{d−1}) down to p_0 = 1: together they say that the
    # mass is one.
    truth = toy.density(name)
    for d in range(truth.dimension, 0, -1):
        nodes, weights = line(truth.low[d - 1].item(), truth.high[d - 1].item())
        for given in rows(truth, 3, 5)[:, : d - 1]:
            x = torch.cat([given.expand(len(nodes), -1), nodes[:, None]], 1)
            left = (FAMILIES[name](d).log_prob(x).exp() * weights).sum().log()
            log_p = FAMILIES[name](d - 1).log_prob(given[None]) if d > 1 else torch.zeros(1)
            assert left.item() == pytest.approx(log_p.item(), abs=1e-6)


@above_three
def test_the_family_of_the_test_above_holds_the_density(name: str) -> None:
    x = rows(toy.density(name), 4, 10)
    assert torch.equal(FAMILIES[name](x.shape[1]).log_prob(x), toy.density(name).log_prob(x))


# Independent formulas, by scipy.


def mixture_log_density(name: str, x: Array) -> Array:
    truth = toy.density(name)
    assert isinstance(truth, toy.GaussianMixture)
    parts = zip(truth.weights.numpy(), truth.means.numpy(), truth.factors.numpy(), strict=True)
    return np.log(sum(w * stats.multivariate_normal.pdf(x, m, f @ f.T) for w, m, f in parts))


def checkerboard_log_density(x: Array) -> Array:
    s = np.tanh(3 * np.sin(4 * np.pi * x)) / np.tanh(3)
    return np.log(1 + 0.98 * s[:, 0] * s[:, 1])


def markov_correlations(rho: float, d: int) -> Array:
    return np.array([[rho ** abs(i - j) for j in range(d)] for i in range(d)])


def student_log_density(x: Array) -> Array:
    return stats.multivariate_t.logpdf(x, shape=markov_correlations(-0.7, 4), df=5)


def funnel_log_density(x: Array) -> Array:
    v = x[:, :1]
    return stats.norm.logpdf(v)[:, 0] + stats.norm.logpdf(x[:, 1:], scale=np.exp(v / 2)).sum(1)


def chain_step(x: Array, law: Callable[..., Array]) -> Array:
    u = np.hstack([np.zeros((len(x), 1)), x[:, :-1]])
    w = 1 / (1 + np.exp(-u))
    upper, lower = 1 + np.sin(2 * u) / 2, -1 + np.cos(2 * u) / 2
    return w * law(x, upper, 0.25) + (1 - w) * law(x, lower, 0.25)


def chain_log_density(x: Array) -> Array:
    return np.log(chain_step(x, stats.logistic.pdf)).sum(1)


def copula_scores(x: Array) -> Array:
    z = np.log(x) - np.log1p(-np.where(x < 1, x, 0))
    z[:, 0::2] = stats.norm.isf(stats.expon.sf(x[:, 0::2]))
    return z


def copula_log_density(x: Array) -> Array:
    z, b = copula_scores(x), x[:, 1::2]
    joint = stats.multivariate_normal.logpdf(z, cov=markov_correlations(0.6, 8))
    return joint - stats.norm.logpdf(z).sum(1) + margins(x[:, 0::2], b, z[:, 1::2])


def margins(half_line: Array, bounded: Array, z: Array) -> Array:
    logit_normal = stats.norm.logpdf(z) - np.log(bounded) - np.log1p(-bounded)
    return stats.expon.logpdf(half_line).sum(1) + logit_normal.sum(1)


ORACLES: dict[str, Callable[[Array], Array]] = {
    "moons": lambda x: mixture_log_density("moons", x),
    "ring": lambda x: mixture_log_density("ring", x),
    "checkerboard": checkerboard_log_density,
    "mixture": lambda x: mixture_log_density("mixture", x),
    "student": student_log_density,
    "funnel": funnel_log_density,
    "chain": chain_log_density,
    "copula": copula_log_density,
}


@every
def test_log_density_equals_an_independent_formula(truth: toy.Density) -> None:
    x = rows(truth, 4, 500)
    np.testing.assert_allclose(truth.log_prob(x).numpy(), ORACLES[truth.name](x.numpy()), atol=1e-8)


# Independent uniforms: what each row becomes under its own conditional distribution functions.


def whitened(z: Array, correlations: Array) -> Array:
    return np.linalg.solve(np.linalg.cholesky(correlations), z.T).T


def student_uniforms(x: Array) -> Array:
    z = whitened(x, markov_correlations(-0.7, 4))
    # z_i | z_<i is Student t with ν + i degrees of freedom, scale² (ν + |z_<i|²) / (ν + i).
    before = np.cumsum(np.hstack([np.zeros((len(z), 1)), z[:, :-1] ** 2]), 1)
    freedom = 5 + np.arange(4)
    return stats.t.cdf(z / np.sqrt((5 + before) / freedom), freedom)


def funnel_uniforms(x: Array) -> Array:
    return stats.norm.cdf(np.hstack([x[:, :1], x[:, 1:] / np.exp(x[:, :1] / 2)]))


def chain_uniforms(x: Array) -> Array:
    return chain_step(x, stats.logistic.cdf)


def copula_uniforms(x: Array) -> Array:
    return stats.norm.cdf(whitened(copula_scores(x), markov_correlations(0.6, 8)))


UNIFORMS: dict[str, Callable[[Array], Array]] = {
    "student": student_uniforms,
    "funnel": funnel_uniforms,
    "chain": chain_uniforms,
    "copula": copula_uniforms,
}


@above_three
def test_samples_become_independent_uniforms(name: str) -> None:
    # Kolmogorov-Smirnov at 1e−6 per column; correlations among all u and |u − ½| at five standard
    # errors.
    n = 150_000
    u = UNIFORMS[name](rows(toy.density(name), 5, n).numpy())
    assert min(stats.kstest(column, "uniform").pvalue for column in u.T) > 1e-6
    features = np.hstack([u, np.abs(u - 0.5)])
    correlations = np.corrcoef(features.T) - np.eye(features.shape[1])
    assert np.abs(correlations).max() < 5 / math.sqrt(n)


# Interface.


def test_there_are_eight_named_densities_of_two_to_eight_columns() -> None:
    assert len(toy.DENSITIES) == 8
    assert [truth.dimension for truth in toy.DENSITIES.values()] == [2, 2, 2, 3, 4, 5, 6, 8]
    assert all(toy.density(name).name == name for name in toy.DENSITIES)


@every
def test_shapes_and_dtypes(truth: toy.Density) -> None:
    x = truth.sample(7, seeded(0))
    assert x.shape == (7, truth.dimension)
    assert x.dtype == torch.float32
    assert truth.log_prob(x).shape == (7,)
    assert truth.log_prob(x).dtype == torch.float32
    assert truth.log_prob(x.double()).dtype == torch.float64
    assert truth.low.shape == truth.high.shape == (truth.dimension,)


@every
def test_same_seed_same_rows_in_every_dtype(truth: toy.Density) -> None:
    x = truth.sample(50, seeded(6))
    assert torch.equal(x, truth.sample(50, seeded(6)))
    assert torch.equal(x, truth.sample(50, seeded(6), dtype=torch.float64).float())
    assert not torch.equal(x, truth.sample(50, seeded(7)))


@every
def test_float32_rows_score_as_float64_rows(truth: toy.Density) -> None:
    x = rows(truth, 8, 10_000)
    torch.testing.assert_close(
        truth.log_prob(x.float()).double(), truth.log_prob(x), atol=1e-4, rtol=1e-4
    )


@every
def test_without_a_generator_the_global_one_is_left_alone(truth: toy.Density) -> None:
    before = torch.get_rng_state()
    assert not torch.equal(truth.sample(5), truth.sample(5))
    assert torch.equal(before, torch.get_rng_state())


def test_declared_supports() -> None:
    assert toy.density("checkerboard").low.tolist() == [0, 0]
    assert toy.density("checkerboard").high.tolist() == [1, 1]
    assert toy.density("copula").low.tolist() == [0] * 8
    assert toy.density("copula").high.tolist() == [math.inf, 1] * 4
    unbounded = [
        truth for name, truth in toy.DENSITIES.items() if name not in ("checkerboard", "copula")
    ]
    assert all(
        (truth.low == -math.inf).all() and (truth.high == math.inf).all() for truth in unbounded
    )


@every
def test_outside_the_support_the_density_is_zero(truth: toy.Density) -> None:
    inside = rows(truth, 9, 200)
    assert ((truth.low <= inside) & (inside <= truth.high)).all()
    assert truth.log_prob(inside).isfinite().all()
    for column in range(truth.dimension):
        for edge, step in ((truth.low[column], -1e-6), (truth.high[column], 1e-6)):
            x = inside.clone()
            x[:, column] = edge + step  # an infinite edge stays infinite
            assert (truth.log_prob(x) == -math.inf).all()


@every
def test_a_missing_value_has_no_density(truth: toy.Density) -> None:
    x = rows(truth, 10, 2)
    x[0, 0] = math.nan
    assert truth.log_prob(x).isnan().tolist() == [True, False]


def test_the_copula_reaches_its_edges_and_its_far_tail() -> None:
    truth, x = toy.density("copula"), rows(toy.density("copula"), 11, 1)
    for column, edge in ((0, 0.0), (1, 0.0), (1, 1.0)):
        at_edge = x.clone()
        at_edge[:, column] = edge
        assert truth.log_prob(at_edge).item() == -math.inf
    far = torch.tensor([699.99, 700.01, 760.0, 1e4], dtype=torch.float64)
    z = normal.exponential_score(far)
    torch.testing.assert_close(-torch.special.log_ndtr(-z), far, atol=2e-2, rtol=0)
    assert truth.log_prob(torch.cat([far[:, None], x[:, 1:].expand(4, -1)], 1)).isfinite().all()


def test_errors_name_the_mistake() -> None:
    with pytest.raises(
        ValueError, match=r"no toy density 'rings'; the known ones are moons, ring, .*, copula\."
    ):
        toy.density("rings")
    with pytest.raises(ValueError, match=r"n must be at least 1, but is 0\."):
        toy.density("ring").sample(0)
    with pytest.raises(
        ValueError, match=r"x must have shape \(n, 2\) for 'ring', but has \(5, 3\)\."
    ):
        toy.density("ring").log_prob(torch.zeros(5, 3))
