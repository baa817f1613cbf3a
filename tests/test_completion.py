"""Completions of pixels anywhere, against all images of 2 × 2 pixels."""

import itertools
import math

import pytest
import torch

from nits.heads import Quantized
from nits.images.completion import completed, effective, systematic
from nits.model.joint import NITS
from nits.weights import ConvSize

LEVELS = 3


@pytest.fixture(scope="module")
def model() -> NITS:
    found = NITS.conv(
        (1, 2, 2), Quantized(0.0, 1.0, LEVELS, (4,)), size=ConvSize(8, 2, (1,)), generator=0
    )
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in found.parameters():
            weights.add_(torch.randn(weights.shape, generator=source), alpha=0.1)
    return found


def every(model: NITS, given: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns all images that agree with what is given, and their log-probabilities."""
    rows = torch.tensor(list(itertools.product(range(LEVELS), repeat=4)), dtype=torch.float32)
    told = torch.tensor(given)
    rows = rows[((rows == told) | torch.isnan(told)).all(1)]
    with torch.no_grad():
        return rows, model.log_prob(rows).double()


@pytest.mark.parametrize(
    "given",
    [
        [math.nan, math.nan, math.nan, 2.0],
        [math.nan, 1.0, math.nan, 0.0],
        [2.0, 0.0, math.nan, math.nan],
        [math.nan] * 4,
    ],
)
def test_completions_have_the_exact_conditional_frequencies(
    model: NITS, given: list[float]
) -> None:
    rows, log_prob = every(model, given)
    found = completed(model, torch.tensor(given), 20_000, 0)
    assert found.log_prob == pytest.approx(float(log_prob.logsumexp(0)), abs=0.02)
    shares = log_prob.softmax(0)
    seen = torch.tensor([float((found.rows == row).all(1).double().mean()) for row in rows])
    # Four standard errors, of as many draws as they are worth.
    spread = (shares * (1 - shares) / found.ess).sqrt()
    assert float(seen.sum()) == pytest.approx(1)
    assert bool(((seen - shares).abs() <= 4 * spread + 1e-6).all())


def test_what_comes_first_is_given_exactly(model: NITS) -> None:
    first = completed(model, torch.tensor([1.0, 2.0, math.nan, math.nan]), 64, 0)
    assert first.exact
    assert first.ess == pytest.approx(64)
    later = completed(model, torch.tensor([math.nan, 2.0, math.nan, math.nan]), 64, 0)
    assert not later.exact
    assert later.ess < 64
    whole = completed(model, torch.tensor([1.0, 2.0, 0.0, 1.0]), 4, 0)
    with torch.no_grad():
        truth = float(model.log_prob(torch.tensor([[1.0, 2.0, 0.0, 1.0]])))
    assert whole.log_prob == pytest.approx(truth, abs=1e-5)


def test_resampling_follows_the_weights() -> None:
    weights = torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64).log()
    chosen = systematic(weights, torch.Generator().manual_seed(0))
    assert torch.bincount(chosen, minlength=4).tolist() == [2, 1, 1, 0]
    assert effective(weights) == pytest.approx(1 / (0.25 + 2 * 0.0625))
