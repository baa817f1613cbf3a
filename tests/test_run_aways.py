"""Samples of images do not run away into noise: the straight-line guess stays in its reach."""

import math

import pytest
import torch
from torch import Tensor

from nits import NITS, Recipe, fit
from nits.heads import Continuous, Quantized
from nits.images.rows import to_images, to_rows
from nits.pnn.plain import log_weights
from nits.weights import CausalConv, ConvSize
from nits.weights.causal_theta import PixelTheta
from registry import seeded

SIDE, LEVELS = 24, 256
TINY = ConvSize(filters=4, blocks=1)
ANYWHERE = torch.tensor([-math.inf, math.inf])


def last_stage(model: NITS) -> PixelTheta:
    assert isinstance(model.weights, CausalConv)
    return model.weights.theta


def extrapolating(reach: Tensor) -> NITS:
    """A pixel is 1.2 left − 0.8 above left + 0.6 above, in 98 of 100 cases to 1 % of the range.

    Along a row this guess is an unstable filter: it grows by 1.2 from pixel to pixel. The other two
    cases have a broad unit, as wide as 0.3 of the range.
    """
    model = NITS.conv((1, SIDE, SIDE), Quantized(0.0, 1.0, LEVELS, (2,)), size=TINY, generator=0)
    last = last_stage(model)
    steep = -torch.log(torch.tensor([0.01, 0.3]))  # log W
    slopes = -steep / torch.sqrt(1 - (steep / 20) ** 2)  # whose log_weights these are
    torch.testing.assert_close(log_weights(slopes), steep)
    theta = torch.cat([slopes, torch.zeros(2), torch.log(torch.tensor([0.98, 0.02]))])
    last.start_at(theta.expand(SIDE * SIDE, 1, -1))
    features = Quantized(0.0, 1.0, LEVELS, (2,)).features(torch.tensor([[0.0, 255.0]]))[0, 0]
    scale = (254.5 - 0.5) / 255 / float(features[1] - features[0])  # of a feature, as a point
    with torch.no_grad():
        # Each neighbour has a value and a flag: left, above left, above, above right.
        last.guess[0, 0:6:2] = scale * torch.tensor([1.2, -0.8, 0.6])
        last.guess[0, -1] = 0.5 / 255 - scale * float(features[0])  # the point of a feature of zero
        last.reach.copy_(reach)
    return model


def noisy_share(model: NITS, seed: int = 0) -> float:
    """How many of the last rows' pixels are far from their left neighbour, below rows of noise."""
    noise = torch.randint(LEVELS, (32, 1, SIDE, SIDE), generator=seeded(seed))
    given = to_rows(noise).float()
    given[:, 3 * SIDE :] = math.nan
    drawn = to_images(model.sample(32, generator=seed, given=given), (1, SIDE, SIDE))
    steps = drawn[:, 0, -8:].diff(dim=-1).abs() / LEVELS
    return float((steps > 0.15).float().mean())


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_does_not_feed_itself(seed: int) -> None:
    """Guesses beyond the range leave all mass to the broad unit, so that noise begets noise."""
    anywhere = noisy_share(extrapolating(ANYWHERE), seed)
    kept = noisy_share(extrapolating(torch.tensor([0.0, 1.0])), seed)
    assert anywhere > 0.1
    assert kept < 0.06


def test_mass_stays_with_the_narrow_unit() -> None:
    """With the guess at the end of its reach, the outermost hundredth has most of the mass."""
    shares = {}
    for name, reach in (("anywhere", ANYWHERE), ("kept", torch.tensor([0.0, 1.0]))):
        model = extrapolating(reach)
        last_stage(model).guess[0, -1] = -0.8  # far below the range
        with torch.no_grad():
            rows = to_rows(torch.zeros(2, 1, SIDE, SIDE))
            rows[:, -1] = torch.tensor([3.0, 0.0])
            shares[name] = float(model.conditionals(rows)[-1].cdf(rows[:, -1])[0])
    assert shares["anywhere"] < 0.1
    assert shares["kept"] > 0.6


def fields(shape: tuple[int, int, int], count: int) -> Tensor:
    """Smooth images of grey or of colours that are alike, values from 0 to 255."""
    channels, height, width = shape
    noise = torch.randn(count, 1 + channels, height + 8, width + 8, generator=seeded(5))
    smooth = torch.nn.functional.avg_pool2d(noise, 9, stride=1) * 9
    mixed = 0.9 * smooth[:, :1] + 0.4 * smooth[:, 1:]
    return (128 + 50 * mixed).round().clamp(0, 255)


def statistics(images: Tensor) -> dict[str, float]:
    """Mean difference of neighbours, spread of pixels, and difference of the channels."""
    return {
        "right": float(images.diff(dim=3).abs().mean()),
        "down": float(images.diff(dim=2).abs().mean()),
        "spread": float(images.std()),
        "colour": float((images.amax(1) - images.amin(1)).mean()) + 1.0,
    }


IMAGES = {
    "grey": ((1, 10, 9), Quantized(0.0, 1.0, LEVELS, (8, 8))),
    "logistics": ((1, 8, 12), Quantized(0.0, 1.0, LEVELS, (5,))),
    "colours": ((3, 9, 10), Quantized(0.0, 1.0, LEVELS, (8,))),
    "real": ((1, 9, 9), Continuous(-1.0, 256.0, hidden=(8,))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(IMAGES))
def test_samples_look_like_what_the_model_follows(name: str) -> None:
    """Range, differences of neighbours and saturation of 1,000 samples, as in training images.

    After 150 steps, when the broad units of the start have become few.
    """
    shape, head = IMAGES[name]
    images = fields(shape, 500)
    model = NITS.conv(shape, head, size=TINY, generator=0)
    recipe = Recipe(batch_size=50, learning_rate=5e-3, average=0.9)
    fit(model, to_rows(images), max_steps=150, recipe=recipe, progress=False)
    low, high = last_stage(model).reach.tolist()
    assert low < high < math.inf
    drawn = to_images(model.sample(1000, generator=0), shape)
    margin = 0.25 * float(images.max() - images.min())
    assert float(drawn.min()) >= float(images.min()) - margin
    assert float(drawn.max()) <= float(images.max()) + margin
    found, expected = statistics(drawn), statistics(images)
    for key, value in expected.items():
        assert found[key] <= 1.5 * value, key
        assert found[key] >= 0.5 * value, key


def test_models_from_before_have_no_reach() -> None:
    """A state without it loads, and gives what it gave: the guess goes anywhere."""
    model = extrapolating(torch.tensor([0.0, 1.0]))
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("reach")}
    model.load_state_dict(state)
    assert torch.equal(last_stage(model).reach, ANYWHERE)
