"""Mixtures: the average of exact densities, in weights and in samples."""

import math
import re

import pytest
import torch

from nits import NITS, Mixture
from nits.heads import Continuous
from registry import mlp, randomized, real, seeded


def two(context: int = 0) -> list[NITS]:
    """Two models of the same three columns in different orders."""
    orders = ([0, 1, 2], [2, 0, 1])
    return [
        randomized(lambda order=order: mlp(real(3), context, order), seed)  # type: ignore[misc]
        for seed, order in enumerate(orders)
    ]


def test_the_density_is_the_weighted_average() -> None:
    models = two()
    mixture, x = Mixture(models, [3.0, 1.0]), torch.randn(50, 3, generator=seeded(0))
    a, b = (model.log_prob(x).exp() for model in models)
    torch.testing.assert_close(mixture.log_prob(x).exp(), 0.75 * a + 0.25 * b)
    torch.testing.assert_close(Mixture(models).log_prob(x).exp(), (a + b) / 2)


def test_mass_is_one() -> None:
    parts = [randomized(lambda: mlp([Continuous(-1.0, 1.0)] * 2), seed).double() for seed in (1, 2)]
    nodes = (torch.arange(100, dtype=torch.float64) + 0.5) / 50 - 1
    grid = torch.cartesian_prod(nodes, nodes)
    with torch.no_grad():
        mass = Mixture(parts).double().log_prob(grid).exp().sum() / 50**2
    assert abs(float(mass) - 1) < 2e-3


def test_samples_come_from_each_model_by_its_weight() -> None:
    left, right = (
        NITS.mlp([Continuous(low, low + 1.0)] * 2, hidden=8, blocks=1) for low in (-1.0, 0.0)
    )
    x = Mixture([left, right], [1.0, 3.0]).sample(4000, generator=1)
    on_the_left = (x < 0).all(1)
    assert (on_the_left | (x > 0).all(1)).all()
    # 1000 expected, standard deviation 27: five of them are a false alarm in two million
    assert abs(int(on_the_left.sum()) - 1000) < 5 * math.sqrt(4000 * 0.25 * 0.75)


def test_the_seed_decides_the_samples() -> None:
    mixture = Mixture(two())
    assert torch.equal(mixture.sample(20, generator=7), mixture.sample(20, generator=7))
    assert not torch.equal(mixture.sample(20, generator=7), mixture.sample(20, generator=8))


def test_context_goes_to_every_model() -> None:
    models = two(context=2)
    mixture, x = Mixture(models), torch.randn(5, 3, generator=seeded(0))
    context = torch.randn(5, 2, generator=seeded(1))
    expected = torch.stack([model.log_prob(x, context) for model in models]).logsumexp(
        0
    ) - math.log(2)
    torch.testing.assert_close(mixture.log_prob(x, context), expected)
    assert mixture.sample(6, context[0], generator=0).shape == (6, 3)


def test_the_state_keeps_the_weights() -> None:
    mixture, other = Mixture(two(), [1.0, 9.0]), Mixture(two())
    other.load_state_dict(mixture.state_dict())
    torch.testing.assert_close(other.log_weights.exp(), torch.tensor([0.1, 0.9]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Mixture([]),
            "a mixture needs models with the same columns and context, but got no model; pass one",
        ),
        (
            lambda: Mixture([mlp(2), mlp(3)]),
            "but got 2 columns and context 0, 3 columns and context 0; pass one",
        ),
        (
            lambda: Mixture([mlp(2)], [1.0, 2.0]),
            "weights must be one positive number per model, 1, but are [1.0, 2.0]; leave them out",
        ),
        (
            lambda: Mixture([mlp(2), mlp(2)], [1.0, 0.0]),
            "but are [1.0, 0.0]; leave them out for equal weights.",
        ),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()  # type: ignore[operator]
