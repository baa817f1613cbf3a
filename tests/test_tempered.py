"""Mixtures whose columns count for less than by Bayes' rule, equation (48), and slow versions."""

import math
import re

import pytest
import torch
from torch import Tensor

from nits import Mixture, Tempered
from nits.heads import Continuous
from nits.model.joint import NITS
from registry import mlp, randomized, real, seeded

ORDER = [2, 0, 1]


def networks(count: int = 3) -> list[NITS]:
    """Networks that differ in their weights alone."""
    return [randomized(lambda: mlp(real(3), order=ORDER), seed) for seed in range(count)]


def slowly(models: list[NITS], weights: list[float], power: float, x: Tensor) -> Tensor:
    """Returns log ν(x) row by row and column by column, as equation (48) says it."""
    terms = torch.stack([model.log_prob_per_column(x) for model in models]).double()
    found = torch.zeros(len(x), dtype=torch.float64)
    for n in range(len(x)):
        told = [1.0] * len(models)
        for i in ORDER:
            shares = [w * t for w, t in zip(weights, told, strict=True)]
            each = [math.exp(float(terms[k, n, i])) for k in range(len(models))]
            mean = sum(s * p for s, p in zip(shares, each, strict=True)) / sum(shares)
            found[n] += math.log(mean)
            told = [t * p**power for t, p in zip(told, each, strict=True)]
    return found


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_the_density_is_that_of_the_equation(power: float) -> None:
    models, weights = networks(), [0.5, 0.3, 0.2]
    x = torch.randn(20, 3, generator=seeded(0))
    with torch.no_grad():
        found = Tempered(models, weights, power).log_prob(x)
        torch.testing.assert_close(found.double(), slowly(models, weights, power, x))


def test_the_whole_power_is_bayes_rule() -> None:
    models, x = networks(), torch.randn(50, 3, generator=seeded(0))
    plain, tempered = Mixture(models, [3, 1, 1]), Tempered(models, [3, 1, 1], 1.0)
    with torch.no_grad():
        torch.testing.assert_close(tempered.log_prob(x), plain.log_prob(x))
        torch.testing.assert_close(tempered.to_uniform(x), plain.to_uniform(x))


@pytest.mark.parametrize("power", [0.0, 0.3])
def test_steps_score_as_whole_rows_do(power: float) -> None:
    model, x = Tempered(networks(), [3, 1, 1], power), torch.randn(9, 3, generator=seeded(0))
    with torch.no_grad():
        expected, steps = model.log_prob_per_column(x), model.steps(9)
        for i in ORDER:
            torch.testing.assert_close(steps.log_prob(x[:, i]), expected[:, i])
            steps.feed(x[:, i])


def halves() -> list[NITS]:
    """Two networks, one for each side of zero."""
    return [
        randomized(lambda low=low: mlp([Continuous(low, low + 1.0)] * 2), 3)  # type: ignore[misc]
        for low in (-1.0, 0.0)
    ]


def test_columns_that_tell_nothing_leave_the_weights_as_they_were() -> None:
    """A value that one member finds impossible is no reason against it with τ = 0, but else is."""
    x = torch.tensor([[-0.5, 0.5]])
    with torch.no_grad():
        assert torch.isfinite(Tempered(halves(), power=0.0).log_prob(x)).all()
        assert (Tempered(halves(), power=0.01).log_prob(x) == -torch.inf).all()
        rows = Tempered(halves(), power=0.0).sample(2000, generator=0)
    mixed = ((rows[:, 0] < 0) != (rows[:, 1] < 0)).float().mean()
    # a half expected, with a standard deviation of 0.011: six of them
    assert abs(float(mixed) - 0.5) < 0.067


def test_rows_keep_what_is_given() -> None:
    model, given = Tempered(networks(), power=0.5), torch.tensor([math.nan, math.nan, 0.25])
    x = model.sample(50, generator=0, given=given)
    assert (x[:, 2] == 0.25).all()
    assert len(x[:, 0].unique()) == 50


def test_draws_follow_the_conditionals_of_what_is_given() -> None:
    """Kolmogorov and Smirnov's test of a column: a false alarm in about 5,000 runs."""
    model = Tempered(networks(), [1, 1, 2], 0.5)
    x = model.sample(4000, generator=3, given=torch.tensor([math.nan, math.nan, 0.25]))
    with torch.no_grad():
        u = model.to_uniform(x)[:, 0].sort().values.double()
    even = (torch.arange(4000) + 0.5) / 4000
    assert float((u - even).abs().max()) < 2.2 / 4000**0.5


def test_a_file_keeps_the_power(tmp_path: object) -> None:
    import nits

    path = f"{tmp_path}/model.nits"
    model, x = Tempered(networks(), [3, 1, 1], 0.3), torch.randn(5, 3, generator=seeded(0))
    model.save(path)
    loaded = nits.load(path)
    assert isinstance(loaded, Tempered)
    assert float(loaded.power) == pytest.approx(0.3)
    with torch.no_grad():
        assert torch.equal(loaded.log_prob(x), model.log_prob(x))


@pytest.mark.parametrize("power", [-0.1, 1.5, math.nan])
def test_a_power_is_a_share(power: float) -> None:
    message = "power must be a number from 0, where columns tell nothing about the members"
    with pytest.raises(ValueError, match=message):
        Tempered(networks(), power=power)


def test_members_must_share_an_order() -> None:
    models = [mlp(2), mlp(2, order=[1, 0])]
    with pytest.raises(ValueError, match=re.escape("orders differ; use nits.Mixture.")):
        Tempered(models)
