"""Mixtures of one variable: quantiles, mode and entropy against slow, obviously right versions."""

import math

import pytest
import torch
from torch import Tensor

from nits import PNN, QuantizedPNN
from nits.heads import Atoms
from nits.model.mixed import MixedDistribution, least, ranked, unranked
from pnns import weights

SHARES = torch.tensor([0.7, 0.3], dtype=torch.float64)


def mixed(parts: list[PNN] | list[QuantizedPNN]) -> MixedDistribution:
    log_weights = SHARES.log().unsqueeze(1).expand(-1, 4)
    return MixedDistribution(parts, log_weights)


def pnns() -> list[PNN]:
    return [PNN(weights(4, seed=seed), -1.0, 2.0) for seed in (1, 2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranks_count_the_numbers_in_their_order(dtype: torch.dtype) -> None:
    kind = torch.int32 if dtype == torch.float32 else torch.int64
    x = torch.tensor([-math.inf, -3.5, -1e-40, 0.0, 1e-40, 2.0, math.inf], dtype=dtype)
    rank = ranked(x, kind)
    assert (rank.diff() > 0).all()
    assert torch.equal(unranked(rank, dtype), x)
    after = torch.nextafter(x[1:-1], torch.full_like(x[1:-1], math.inf))
    assert torch.equal(ranked(after, kind) - rank[1:-1], torch.ones(5, dtype=kind))


def test_the_least_number_that_reaches_a_probability() -> None:
    """A step at 0.3, to the last digit, and a straight line."""
    step = torch.tensor(0.3)
    low, high = torch.tensor([-1e30]), torch.tensor([1e30])
    found = least(lambda x: (x >= step).float(), torch.tensor([0.5]), low, high)
    assert found == step
    found = least(lambda x: x.clamp(0, 1), torch.tensor([0.25]), low, high)
    assert found == 0.25


def test_quantiles_invert_the_cdf() -> None:
    d = mixed(pnns())
    u = torch.linspace(0.01, 0.99, 31, dtype=torch.float64).unsqueeze(1).expand(-1, 4)
    torch.testing.assert_close(d.cdf(d.icdf(u)), u, rtol=0, atol=1e-13)


def integral(d: MixedDistribution, function: Tensor, x: Tensor) -> Tensor:
    return torch.trapezoid(function * d.log_prob(x).exp(), x, dim=0)


def test_moments_mode_and_entropy_are_those_of_the_density() -> None:
    d = mixed(pnns())
    x = torch.linspace(-1, 2, 4001, dtype=torch.float64).unsqueeze(1).expand(-1, 4)
    mean = integral(d, x, x)
    torch.testing.assert_close(d.mean, mean, rtol=0, atol=1e-4)
    torch.testing.assert_close(d.variance, integral(d, (x - mean) ** 2, x), rtol=0, atol=1e-4)
    torch.testing.assert_close(d.entropy(), integral(d, -d.log_prob(x), x), rtol=0, atol=5e-3)
    best = d.log_prob(x).max(0).values
    assert (d.log_prob(d.mode) > best - 1e-4).all()


def test_a_pmf_has_an_exact_entropy_and_a_whole_mode() -> None:
    parts = [QuantizedPNN(weights(4, seed=seed), -1.0, 2.0, 9) for seed in (1, 2)]
    d = mixed(parts)
    probs = sum(share * part.probs for share, part in zip(SHARES, parts, strict=True))
    torch.testing.assert_close(d.entropy(), -(probs * torch.log(probs)).sum(-1))
    assert torch.equal(d.mode, probs.argmax(-1).double())


def test_an_atom_is_found_to_the_last_digit() -> None:
    head = Atoms((0.0, 0.1), -2.0, 2.0, (6, 5))
    generator = torch.Generator().manual_seed(0)
    parts = [
        head.distribution(torch.randn(4, head.weights, generator=generator), -2.0, 2.0)
        for _ in range(2)
    ]
    d = MixedDistribution(parts, SHARES.float().log().unsqueeze(1).expand(-1, 4))
    x = d.sample((2000,), generator)
    share = (x == torch.tensor(0.1)).float().mean(0)
    expected = d.log_prob(torch.full((4,), 0.1)).exp()
    assert ((share - expected).abs() < 6 * (expected * (1 - expected) / 2000).sqrt()).all()
