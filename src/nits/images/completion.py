"""Completes an image of which pixels anywhere are known: particles walk through its pixels.

Pixels come in reading order. A known one multiplies a particle's weight by its probability, an
unknown one is drawn; where weights have become uneven, particles are resampled. If all known pixels
come first the weights stay equal, and the completions are draws from the exact distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nits.model.joint import NITS
from nits.weights.causal_stepper import ConvStepper

EVEN = 0.5
"""The effective share of particles below which they are resampled."""


@dataclass(frozen=True)
class Completions:
    """Completions of one image.

    rows: Shape (K, D), drawn by weight, so that all count the same.
    ess: How many independent draws they are worth, at the worst pixel.
    log_prob: Log-probability of the known pixels; exact if `exact`.
    """

    rows: Tensor
    ess: float
    exact: bool
    log_prob: float


def completed(model: NITS, given: Tensor, count: int, seed: int) -> Completions:
    """Returns completions of an image.

    given: Values of the known columns, NaN elsewhere, shape (D,).
    count: How many particles there are.
    """
    generator = torch.Generator().manual_seed(seed)
    known = ~torch.isnan(given)
    rows = given.new_empty(count, len(given))
    weights = torch.zeros(count, dtype=torch.float64)
    evidence, least = 0.0, float(count)
    with torch.no_grad():
        steps = model.steps(count)
        for k in model.order.tolist():
            if known[k]:
                rows[:, k] = given[k]
                weights = weights + steps.log_prob(rows[:, k]).double()
                least = min(least, effective(weights))
            else:
                if effective(weights) < EVEN * count and isinstance(steps.stepper, ConvStepper):
                    index = systematic(weights, generator)
                    evidence += mean_weight(weights)
                    rows, weights = rows[index], torch.zeros_like(weights)
                    steps.stepper.take(index)
                rows[:, k] = steps.quantile(torch.rand(count, generator=generator))
            steps.feed(rows[:, k])
    chosen = systematic(weights, generator)
    first = int(known.sum()) == 0 or bool(known[model.order][: int(known.sum())].all())
    return Completions(rows[chosen], least, first, evidence + mean_weight(weights))


def effective(weights: Tensor) -> float:
    """Returns how many equal weights some log-weights are worth."""
    shares = weights.softmax(0)
    return float(1 / shares.square().sum()) if bool(torch.isfinite(shares).all()) else 0.0


def mean_weight(weights: Tensor) -> float:
    """Returns the logarithm of the mean weight."""
    return float(weights.logsumexp(0)) - math.log(len(weights))


def systematic(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Returns as many particles as there are, each about as often as its weight says."""
    count = len(weights)
    at = (torch.arange(count, dtype=torch.float64) + torch.rand(1, generator=generator)) / count
    reach = weights.softmax(0).cumsum(0)
    return torch.searchsorted(reach, at).clamp(max=count - 1)
