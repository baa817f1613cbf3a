"""Completes images of which pixels anywhere are known: particles walk through their pixels.

Pixels come in reading order. A known one multiplies a particle's weight by its probability, an
unknown one is drawn from its distribution given those before; where weights have become uneven, the
particles of an image are resampled. If all known pixels come first the weights stay equal, and the
completions are draws from the exact distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nits.images.dequantized import Dequantized, DequantizedSteps
from nits.model.density import Density
from nits.model.steps import HeadSteps, Steps
from nits.weights.weight_model import Branching

EVEN = 0.5
"""The effective share of particles below which they are resampled."""


@dataclass(frozen=True)
class Walked:
    """What particles found of M images.

    rows: Shape (M, K, D), drawn by weight, so that all K of an image count the same.
    ess: How many independent draws they are worth at the worst pixel, shape (M,).
    ancestors: How many of the particles that started have descendants among them, shape (M,).
    exact: Where all known pixels come first, so that draws and log_prob are exact, shape (M,).
    log_prob: Log-probability of the known pixels, shape (M,): an unbiased estimate of the
        probability, before the logarithm is taken.
    """

    rows: Tensor
    ess: Tensor
    ancestors: Tensor
    exact: Tensor
    log_prob: Tensor


def completed(
    model: Density, given: Tensor, count: int, seed: int, context: Tensor | None = None
) -> Walked:
    """Returns completions of images.

    given: Values of the known columns, NaN elsewhere, shape (M, D).
    count: K, how many particles an image has.
    context: That of each image, shape (M, C).
    """
    with torch.no_grad():
        particles = _Particles(model, given, count, seed, context)
        for k in model.order.tolist():
            particles.walk(k)
        return particles.found(first_in_order(model, ~torch.isnan(given)))


def first_in_order(model: Density, known: Tensor) -> Tensor:
    """Returns of which images all known columns, shape (M, D), come before all unknown ones."""
    ordered = known[:, model.order]
    return ~(ordered[:, 1:] & ~ordered[:, :-1]).any(1)


class _Particles:
    """K copies of each of M images, on the way through their columns."""

    def __init__(
        self, model: Density, given: Tensor, count: int, seed: int, context: Tensor | None
    ) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.known = ~torch.isnan(given)
        self.count = count
        # A known pixel of a model of noisy ones has a noise of its own in each particle.
        copies = given.repeat_interleave(count, 0)
        self.rows = model.noisy(copies) if isinstance(model, Dequantized) else copies
        about = None if context is None else context.repeat_interleave(count, 0)
        self.steps = model.steps(len(copies), about)
        self.weights = torch.zeros(len(given), count, dtype=torch.float64)
        self.origin = torch.arange(count).repeat(len(given), 1)
        self.log_prob = torch.zeros(len(given), dtype=torch.float64)
        self.ess = torch.full((len(given),), float(count), dtype=torch.float64)

    def walk(self, k: int) -> None:
        """Goes through a column: weighs the particles where it is known, and draws elsewhere."""
        known = self.known[:, k]
        if not bool(known.all()):
            self._resample(~known & (effective(self.weights) < EVEN * self.count))
            drawn = self.steps.quantile(torch.rand(len(self.rows), generator=self.generator))
            self.rows[:, k] = torch.where(self._each(known), self.rows[:, k], drawn)
        if bool(known.any()):
            found = self.steps.log_prob(self.rows[:, k]).double().view_as(self.weights)
            self.weights = torch.where(known.unsqueeze(1), self.weights + found, self.weights)
            self.ess = torch.minimum(self.ess, effective(self.weights))
        self.steps.feed(self.rows[:, k])

    def _each(self, images: Tensor) -> Tensor:
        return images.repeat_interleave(self.count, 0)

    def _resample(self, which: Tensor) -> None:
        """Draws the particles of some images by weight; those of the others stay."""
        stepper = _stepper(self.steps)
        if stepper is None or not bool(which.any()):
            return
        index = torch.arange(self.count).repeat(len(which), 1)
        index[which] = systematic(self.weights[which], self.generator)
        self.log_prob[which] += mean_weight(self.weights[which])
        self.weights[which] = 0.0
        flat = (index + self.count * torch.arange(len(which)).unsqueeze(1)).flatten()
        self.rows, self.origin = self.rows[flat], self.origin.gather(1, index)
        stepper.take(flat)

    def found(self, exact: Tensor) -> Walked:
        """Returns particles drawn by weight, and how good they are."""
        chosen = systematic(self.weights, self.generator)
        rows = self.rows.view(len(chosen), self.count, -1)
        origin = self.origin.gather(1, chosen)
        left = torch.tensor([len(part.unique()) for part in origin])
        return Walked(
            rows.gather(1, chosen.unsqueeze(2).expand_as(rows)),
            self.ess,
            left,
            exact,
            self.log_prob + mean_weight(self.weights),
        )


def _stepper(steps: Steps) -> Branching | None:
    """Returns what can go on with some of the particles; without it, none are resampled."""
    inner = steps.inner if isinstance(steps, DequantizedSteps) else steps
    stepper = inner.stepper if isinstance(inner, HeadSteps) else None
    return stepper if isinstance(stepper, Branching) else None


def effective(weights: Tensor) -> Tensor:
    """Returns how many equal weights log-weights, shape (M, K), are worth, shape (M,)."""
    shares = weights.softmax(1)
    found = 1 / shares.square().sum(1)
    return found.masked_fill(torch.isnan(found), 0.0)


def mean_weight(weights: Tensor) -> Tensor:
    """Returns the logarithm of the mean weight of each image, shape (M,)."""
    return weights.logsumexp(1) - math.log(weights.shape[1])


def systematic(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Returns K particles of each image, each about as often as its weight says, shape (M, K)."""
    images, count = weights.shape
    start = torch.rand(images, 1, generator=generator, dtype=torch.float64)
    at = (torch.arange(count, dtype=torch.float64) + start) / count
    reach = weights.softmax(1).cumsum(1).contiguous()
    return torch.searchsorted(reach, at).clamp(max=count - 1)
