"""Completions of pixels anywhere, against all images of 2 × 2 pixels."""

import itertools
import math

import pytest
import torch

from nits.heads import Continuous, Quantized
from nits.images import completion
from nits.images.completion import Walked, completed, effective, systematic
from nits.images.dequantized import Dequantized
from nits.model.joint import NITS
from nits.weights import ConvSize, WindowSize

LEVELS = 3


def type_name(value: object) -> str:
    return type(value).__name__


@pytest.fixture(scope="module", params=[ConvSize(8, 2, (1,)), WindowSize(2, 16, 1)], ids=type_name)
def model(request: pytest.FixtureRequest) -> NITS:
    return disturbed(NITS.conv((1, 2, 2), Quantized(0.0, 1.0, LEVELS, (4,)), size=request.param))


def disturbed(model: NITS) -> NITS:
    """Returns the model with weights of a seed, so that all pixels depend on those before."""
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(0.3 * torch.randn(weights.shape, generator=source))
    return model


def every(
    model: NITS, given: list[float], context: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns all images that agree with what is given, and their log-probabilities."""
    rows = torch.tensor(list(itertools.product(range(LEVELS), repeat=4)), dtype=torch.float32)
    told = torch.tensor(given)
    rows = rows[((rows == told) | torch.isnan(told)).all(1)]
    with torch.no_grad():
        about = None if context is None else context.expand(len(rows), -1)
        return rows, model.log_prob(rows, about).double()


GIVEN = [
    [math.nan, math.nan, math.nan, 2.0],
    [math.nan, 1.0, math.nan, 0.0],
    [2.0, 0.0, math.nan, math.nan],
    [math.nan] * 4,
]


@pytest.fixture(scope="module")
def walked(model: NITS) -> Walked:
    """All four together, each with a mask of its own."""
    return completed(model, torch.tensor(GIVEN), 20_000, 0)


@pytest.mark.parametrize("image", range(4))
def test_completions_have_the_exact_conditional_frequencies(
    model: NITS, walked: Walked, image: int
) -> None:
    rows, log_prob = every(model, GIVEN[image])
    drawn, ess = walked.rows[image], float(walked.ess[image])
    assert float(walked.log_prob[image]) == pytest.approx(float(log_prob.logsumexp(0)), abs=0.02)
    shares = log_prob.softmax(0)
    seen = torch.tensor([float((drawn == row).all(1).double().mean()) for row in rows])
    # Four standard errors, of as many draws as they are worth.
    spread = (shares * (1 - shares) / ess).sqrt()
    assert float(seen.sum()) == pytest.approx(1)
    assert bool(((seen - shares).abs() <= 4 * spread + 1e-6).all())


def test_labels_are_those_of_the_images() -> None:
    """Two images with one mask and two labels, against all images given each label."""
    size = ConvSize(8, 1, (1,))
    made = NITS.conv((1, 2, 2), Quantized(0.0, 1.0, LEVELS, (4,)), size=size, context=2)
    model = disturbed(made)
    given, labels = [math.nan, math.nan, 2.0, math.nan], torch.eye(2)
    found = completed(model, torch.tensor([given] * 2), 20_000, 0, labels)
    for k in range(2):
        rows, log_prob = every(model, given, labels[k])
        truth = (log_prob.softmax(0).unsqueeze(1) * rows).sum(0)
        assert float(found.log_prob[k]) == pytest.approx(float(log_prob.logsumexp(0)), abs=0.02)
        torch.testing.assert_close(found.rows[k].mean(0), truth.float(), atol=0.04, rtol=0)


def test_noise_of_known_pixels_is_weighed() -> None:
    """A density of noisy pixels on [0, 256) that prefers the upper half of a pixel's interval.

    The second pixel is the greater the greater the noise of the first, so that knowing it weighs
    the noise of the first, which is drawn, and of no image twice.
    """
    inner = NITS.conv((1, 1, 2), Continuous(0.0, 1.0, (4,)), size=ConvSize(4, 1, (1,)))
    model = Dequantized(disturbed(inner), seed=0)
    found = completed(model, torch.tensor([[math.nan, 200.0]]), 4000, 0)
    sides = (torch.arange(400) + 0.5) / 400
    below = sides * 256 + 1e-4  # off the integers, which would get noise
    with torch.no_grad():
        at = torch.stack(
            [below.repeat(8), (200 + (torch.arange(8) + 0.5) / 8).repeat_interleave(400)]
        )
        density = model.log_prob(at.t()).double().exp().view(8, 400).mean(0)
    truth = float((density * below).sum() / density.sum())
    assert float(found.rows[0, :, 0].mean()) == pytest.approx(truth, abs=6)
    assert float(found.log_prob[0]) == pytest.approx(
        math.log(float(density.mean()) * 256), abs=0.05
    )


def test_what_comes_first_is_given_exactly(model: NITS) -> None:
    given = torch.tensor([[1.0, 2.0, math.nan, math.nan], [math.nan, 2.0, math.nan, math.nan]])
    found = completed(model, given, 64, 0)
    assert found.exact.tolist() == [True, False]
    assert float(found.ess[0]) == pytest.approx(64)
    assert float(found.ess[1]) < 64
    assert int(found.ancestors[0]) == 64
    whole = completed(model, torch.tensor([[1.0, 2.0, 0.0, 1.0]]), 4, 0)
    with torch.no_grad():
        truth = float(model.log_prob(torch.tensor([[1.0, 2.0, 0.0, 1.0]])))
    assert float(whole.log_prob) == pytest.approx(truth, abs=1e-5)


def test_uneven_particles_are_drawn_anew_with_all_that_they_have_seen(model: NITS) -> None:
    with torch.no_grad():
        particles = completion._Particles(model, torch.full((1, 4), math.nan), 50, 0, None)
        particles.walk(0)
        particles.walk(1)
        particles.weights = -torch.arange(50.0).double().unsqueeze(0)
        particles.walk(2)
        assert 3 < len(particles.origin[0].unique()) < 8
        rows = particles.rows.clone()
        rows[:, 3] = torch.arange(50.0) % LEVELS
        found = particles.steps.log_prob(rows[:, 3])
        expected = model.log_prob_per_column(rows)[:, 3]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_resampling_follows_the_weights() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]]).double().log()
    chosen = systematic(weights, torch.Generator().manual_seed(0))
    assert torch.bincount(chosen[0], minlength=4).tolist() == [2, 1, 1, 0]
    assert chosen[1].tolist() == [3] * 4
    torch.testing.assert_close(
        effective(weights), torch.tensor([1 / (0.25 + 2 * 0.0625), 1.0]).double()
    )
