"""loc + scale · X, against torch's own normal distributions."""

import math
import re

import pytest
import torch
from torch.distributions import Normal

from nits import PNN, QuantizedPNN
from nits.pnn.affine import Affine
from pnns import weights
from registry import seeded

LOC, SCALE = torch.tensor([0.5, -3.0, 0.0]), torch.tensor([[0.1], [2.0]])


def test_an_affine_normal_is_normal() -> None:
    ours, theirs = Affine(Normal(0.0, 1.0), LOC, SCALE), Normal(LOC, SCALE)
    assert ours.batch_shape == (2, 3)
    x = torch.linspace(-4, 4, 5).reshape(5, 1, 1)
    u = torch.linspace(0.01, 0.99, 5).reshape(5, 1, 1)
    for found, expected in (
        (ours.log_prob(x), theirs.log_prob(x)),
        (ours.cdf(x), theirs.cdf(x)),
        (ours.icdf(u), theirs.icdf(u)),
        (ours.mean, theirs.mean),
        (ours.variance, theirs.variance),
        (ours.mode, theirs.mode),
        (ours.entropy(), theirs.entropy()),
    ):
        torch.testing.assert_close(found, expected)
    assert ours.support.check(x).all()


def test_the_support_moves_with_the_values() -> None:
    d = Affine(PNN(weights(3).float(), torch.tensor([-1.0, 0.0, -math.inf]), 2.0), LOC, 2.0)
    assert d.support.lower_bound.tolist() == [-1.5, -3, -math.inf]
    assert d.support.upper_bound.tolist() == [4.5, 1, 4]
    x = d.sample((500,), seeded(0))
    assert d.support.check(x).all()
    assert x.amax(0).le(torch.tensor([4.5, 1, 4])).all()
    assert (d.log_prob(d.support.upper_bound + 0.01) == -math.inf).all()


def test_samples_carry_gradients_to_all_parameters() -> None:
    theta, loc, scale = (t.clone().requires_grad_() for t in (weights(3).float(), LOC, SCALE))
    d = Affine(PNN(theta, -1.0, 2.0), loc, scale)
    assert not d.sample((4,)).requires_grad
    x = d.rsample((4,), seeded(0))
    found = torch.autograd.grad(x.sum(), (theta, loc, scale))
    assert (found[0] != 0).any(1).all()
    assert found[1].tolist() == [8, 8, 8]
    inner = (x - loc) / scale
    torch.testing.assert_close(found[2], inner.sum((0, 2)).unsqueeze(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Affine(Normal(0.0, 1.0), 0.0, torch.tensor([1.0, -2.0])),
            "scale must be positive, but its least value is -2; pass a scale above zero.",
        ),
        (
            lambda: Affine(QuantizedPNN(weights(1), 0.0, 1.0, 4), 0.0, 1.0),
            "needs a distribution with a density, but QuantizedPNN is discrete; move its values",
        ),
    ],
)
def test_what_an_affine_map_refuses(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()  # type: ignore[operator]
