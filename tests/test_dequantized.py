"""Pixels with uniform noise, and the bound of equation (19)."""

import itertools
import math

import pytest
import torch

from nits import NITS, Dequantized
from nits.heads import Continuous, Quantized
from nits.weights import CausalConv, ConvSize
from registry import randomized, seeded

TINY = ConvSize(filters=5, blocks=2, dilations=(1,))


def model(pnn: tuple[int, ...] = (6, 5), scale: float = 0.2) -> Dequantized:
    make = lambda: Dequantized.conv((1, 2, 2), Continuous(0.0, 1.0, pnn), size=TINY)  # noqa: E731
    found = randomized(make, 1, scale)
    assert isinstance(found, Dequantized)
    return found


def biases(made: NITS) -> torch.Tensor:
    assert isinstance(made.weights, CausalConv)
    return made.weights.theta.bias


def pixels(count: int) -> torch.Tensor:
    return torch.randint(256, (count, 4), generator=seeded(0)).float()


def test_where_the_density_is_uniform_the_bound_is_exact_and_that_of_the_discrete_model() -> None:
    """All PNN weights of one hidden unit, as flat as they come: both give 8 bits per pixel."""
    flat = model((1,))
    discrete = randomized(
        lambda: NITS.conv((1, 2, 2), Quantized(0.0, 1.0, 256, (1,)), size=TINY), 1
    )
    with torch.no_grad():
        for made in (flat, discrete):
            for parameter in made.parameters():
                parameter.zero_()
            biases(made).view(4, 3)[:, 0] = 30.0  # a slope so small that σ is a straight line
        x = pixels(10)
        bits = [-float(made.log_prob(x).mean()) / 4 / math.log(2) for made in (flat, discrete)]
    assert bits == pytest.approx([8.0, 8.0], abs=1e-5)


def test_the_bound_grows_with_the_draws_and_stays_below_the_probability() -> None:
    """One pixel's density and its bins' masses are the same PNN's: the bound's target is known."""
    made = randomized(lambda: Dequantized.conv((1, 1, 1), Continuous(0.0, 1.0, (6,)), size=TINY), 2)
    assert isinstance(made, Dequantized)
    steep, centres = torch.full((6,), -7.0), torch.linspace(0.2, 0.8, 6)
    made.weights.start_at(
        torch.cat([steep, centres, torch.zeros(6)])
    )  # the density varies within a bin
    exact = NITS.conv((1, 1, 1), Quantized(0.0, 1.0, 256, (6,)), size=TINY)
    exact.load_state_dict(made.state_dict())
    x = torch.arange(256.0).unsqueeze(1).repeat(20, 1)
    torch.manual_seed(0)
    with torch.no_grad():
        truth = float(exact.log_prob(x).mean())
        one, many = (float(made.bound(x, draws=draws).mean()) for draws in (1, 64))
    assert one < many - 0.01
    assert many == pytest.approx(truth, abs=0.02)
    assert one < truth


def test_the_mean_probability_under_noise_is_the_probability() -> None:
    """Σ_x P(x) = 1 for P(x) = E ν(z) / 256^D, over all images of two pixels."""
    made = randomized(lambda: Dequantized.conv((1, 1, 2), Continuous(0.0, 1.0, (4,)), size=TINY), 3)
    torch.manual_seed(0)
    x = torch.tensor(list(itertools.product(range(256), repeat=2)), dtype=torch.float32)
    with torch.no_grad():
        assert float(made.log_prob(x).exp().sum()) == pytest.approx(1, abs=0.02)


def test_samples_are_pixels_and_given_ones_are_kept() -> None:
    made = model()
    given = torch.tensor([7.0, 250.0, math.nan, math.nan])
    x = made.sample(50, generator=0, given=given)
    assert ((x >= 0) & (x <= 255) & (x == x.floor())).all()
    assert (x[:, :2] == given[:2]).all()
    assert len(x[:, 2].unique()) > 10


@pytest.mark.parametrize("value", [-1.0, 256.0, 0.5, math.inf])
def test_what_is_no_pixel_is_impossible(value: float) -> None:
    x = torch.zeros(1, 4)
    x[0, 1] = value
    assert model().log_prob(x).item() == -math.inf


def test_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"dequantized columns must be continuous on \[0, 1\]"):
        Dequantized.mlp([Continuous()], hidden=8, blocks=1)
