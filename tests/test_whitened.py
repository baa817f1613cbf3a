"""Columns less what straight lines predict: equation (18)."""

import math

import pytest
import torch

import nits
from nits import NITS, Whitened
from nits.heads import Continuous, Quantized
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from registry import MODELS, seeded


def correlated(count: int, seed: int = 0) -> torch.Tensor:
    """Rows of five Gaussian columns that nearly determine one another."""
    mix = torch.ones(5, 5).tril() + 0.05 * torch.eye(5)
    return torch.randn(count, 5, generator=seeded(seed)) @ mix.t() * 3 + 10


def gaussian_nats(x: torch.Tensor) -> float:
    covariance = torch.cov(x.double().t())
    normal = torch.distributions.MultivariateNormal(x.double().mean(0), covariance)
    return float(normal.log_prob(x.double()).mean())


def test_u_is_uncorrelated_and_of_unit_deviation() -> None:
    model, x = Whitened(NITS.mlp(5, hidden=16, blocks=1, order=[3, 0, 4, 2, 1])), correlated(4000)
    model.follow(x)
    torch.testing.assert_close(torch.cov(model.whiten(x).t()), torch.eye(5), rtol=0, atol=1e-3)


def test_each_u_needs_only_the_columns_before() -> None:
    order = [3, 0, 4, 2, 1]
    model, x = Whitened(NITS.mlp(5, hidden=16, blocks=1, order=order)), correlated(50)
    model.follow(x)
    changed = x.clone()
    changed[:, order[3]] += 1
    difference = (model.whiten(changed) - model.whiten(x))[:, order].abs().amax(0)
    assert (difference[:3] == 0).all()
    assert (difference[3:] > 0).all()


def test_it_starts_as_a_gaussian_where_the_data_are_one() -> None:
    """Before any training the product of u's marginals is nearly the Gaussian that fits best."""
    x = correlated(20_000)
    model, plain = Whitened(NITS.mlp(5, hidden=16, blocks=1)), nits.NITS.mlp(5, hidden=16, blocks=1)
    for made in (model, plain):
        start_from_data(made, Rows(x))
    with torch.no_grad():
        found, without = float(model.log_prob(x).mean()), float(plain.log_prob(x).mean())
    assert found == pytest.approx(gaussian_nats(x), abs=0.1)
    assert without < found - 1


def test_columns_that_determine_one_another_are_no_obstacle() -> None:
    x = correlated(1000)[:, [0, 1, 1, 2, 3]]
    model = Whitened(NITS.mlp(5, hidden=16, blocks=1))
    start_from_data(model, Rows(x))
    assert torch.isfinite(model.log_prob(x)).all()


def test_training_takes_the_rows_as_they_are() -> None:
    x = correlated(600)
    model = Whitened(NITS.mlp(5, hidden=16, blocks=1))
    history = nits.fit(model, x, max_steps=20, progress=False)
    assert history.final_validation is not None
    assert history.final_validation > gaussian_nats(x) - 0.5


def test_given_values_are_kept_to_the_last_digit_and_seen() -> None:
    model = MODELS["whitened"]()
    given = torch.tensor(
        [[0.123456, math.nan, math.nan], [5.0, math.nan, math.nan]]
    ).repeat_interleave(2000, 0)
    x = model.sample(4000, generator=0, given=given)
    assert (x[:, 0] == given[:, 0]).all()
    with torch.no_grad():
        conditional = model.conditionals(given[::2000].nan_to_num())[1]
        middle = conditional.icdf(torch.tensor(0.5))
    drawn = x[:, 1].unflatten(0, (2, 2000)).median(1).values
    torch.testing.assert_close(drawn, middle, rtol=0, atol=0.1)
    assert abs(float(middle[1] - middle[0])) > 0.3


@pytest.mark.parametrize(
    "head", [Continuous(0.0, 1.0), Quantized(0.0, 1.0, 4), Continuous(optional=True)], ids=str
)
def test_other_columns_are_refused(head: nits.heads.Head) -> None:
    with pytest.raises(
        ValueError,
        match="whitened columns must be real ones without limits, atoms or missing values",
    ):
        Whitened(NITS.mlp([Continuous(), head], hidden=8, blocks=1))


def test_an_infinite_value_is_impossible() -> None:
    model = MODELS["whitened"]()
    assert model.log_prob(torch.tensor([[0.0, math.inf, 1.0]])).item() == -math.inf
