"""Laws of sampling: rows follow the density, and the seed decides which."""

import copy

import torch
from scipy import stats

from laws.density import Density, some_context, some_rows, steps
from registry import seeded


def samples_follow_the_density(model: Density) -> None:
    """E_{x ~ p}[q(x) / p(x)] = 1 for q near p, within six standard errors (false alarm 2e−9)."""
    n, other = 4000, copy.deepcopy(model)
    with torch.no_grad():
        for i, parameter in enumerate(other.parameters()):
            noise = torch.randn(parameter.shape, generator=seeded(i)) * (parameter != 0)
            parameter.add_(0.02 * noise)
        x, context = some_rows(model, n)
        ratio = (other.log_prob(x, context) - model.log_prob(x, context)).double().exp()
    error = ratio.std() / n**0.5
    assert 1e-4 < error < 0.02, f"the neighbour is too near or too far for a test: {error:.5f}"
    assert (ratio.mean() - 1).abs() < 6 * error


def samples_are_uniform_after_the_transform(model: Density) -> None:
    """F(samples), by the conditionals' own cdf, is uniform and independent of the columns before.

    Kolmogorov–Smirnov per column and a correlation per pair, 28 tests at most of 1e−7 each.
    Inside a step of a discrete cdf the point is drawn at random.
    """
    n = 3000
    x, context = some_rows(model, n, seed=4)
    jitter = torch.rand(x.shape, generator=seeded(5))
    u, jump = torch.empty_like(x), steps(model, x, context)
    with torch.no_grad():
        for i, distribution in enumerate(model.conditionals(x, context)):
            u[:, i] = distribution.cdf(x[:, i]) - jitter[:, i] * jump[:, i]
    for column in u.t():
        assert stats.kstest(column.double().numpy(), "uniform").pvalue > 1e-7
    if model.columns > 1:
        correlation = torch.corrcoef(u.t()) - torch.eye(model.columns)
        assert correlation.abs().max() < 5.33 / n**0.5


def the_seed_decides_the_samples(model: Density) -> None:
    """The same seed gives the same rows, another seed others; the global generator is not used."""
    context = some_context(model, 8)
    state = torch.get_rng_state()
    for quasi in (False, True):
        generator = seeded(1)
        first = model.sample(8, context, 1, quasi=quasi)
        assert torch.equal(model.sample(8, context, generator, quasi=quasi), first)
        assert not torch.equal(model.sample(8, context, generator, quasi=quasi), first)
        assert not torch.equal(model.sample(8, context, quasi=quasi), first)
    assert torch.equal(torch.get_rng_state(), state)
