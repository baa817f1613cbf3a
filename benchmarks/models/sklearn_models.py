"""A Gaussian mixture and a kernel density from scikit-learn, each the best of a grid by validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from models.fitted import (
    VALIDATION_ROWS,
    Clock,
    Fitted,
    Rows,
    Settings,
    Values,
    chunks,
    some,
    taken,
)
from nits.datasets import Split

SCORED_AT_ONCE = 16384


@dataclass(frozen=True)
class Mixture:
    """Mixtures to try, in this order, on so many of the training rows."""

    components: list[int]
    max_rows: int
    max_iterations: int
    tolerance: float
    floor: float  # added to the variances


@dataclass(frozen=True)
class Kernel:
    """Bandwidths to try, in this order, with Gaussian kernels on so many of the training rows."""

    bandwidths: list[float]
    max_rows: int
    validation_rows: int
    relative_tolerance: float


class Search:
    """The best estimator so far, and how validation went."""

    def __init__(self, validation: Rows, clock: Clock) -> None:
        self.validation, self.clock = validation, clock
        self.best: Any = None
        self.value = -math.inf
        self.chosen: Settings = {}
        self.history: list[tuple[float, float]] = []

    def look(self, estimator: Any, chosen: Settings) -> None:
        """Scores an estimator on validation and keeps it if it is the best so far."""
        value = float(score(estimator, self.validation).mean())
        self.history.append((self.clock.seconds, value))
        if self.best is None or value > self.value:
            self.best, self.value, self.chosen = estimator, value, chosen

    def fitted(self, parameters: int, epochs: float, steps: int) -> Fitted:
        """Returns the best estimator."""
        best = self.best
        return Fitted(
            log_prob=lambda rows: score(best, rows),
            parameters=parameters,
            epochs=epochs,
            steps=steps,
            seconds=self.clock.seconds,
            history=self.history,
            chosen=self.chosen,
        )


def score(estimator: Any, rows: Rows) -> Values:
    """Returns the nats of rows."""
    parts = [
        estimator.score_samples(part.astype(np.float64)) for part in chunks(rows, SCORED_AT_ONCE)
    ]
    return np.concatenate(parts)


def gaussian_mixture(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Fits mixtures with more and more components until the clock is up."""
    clock, s = Clock(minutes), taken(Mixture, settings)
    train = some(split.train, s.max_rows, seed).astype(np.float64)
    search = Search(np.array(split.validation[:VALIDATION_ROWS]), clock)
    iterations = 0
    for count in s.components:
        if search.history and clock.progress >= 1:
            break
        mixture = _mixture(count, s, seed)
        iterations += _expectation_maximization(mixture, train, s.max_iterations, clock)
        search.look(mixture, {"components": count})
    columns = train.shape[1]
    each = columns + columns * (columns + 1) // 2 + 1  # mean, covariance and share
    return search.fitted(search.chosen["components"] * each - 1, float(iterations), iterations)


def _mixture(components: int, s: Mixture, seed: int) -> Any:
    return GaussianMixture(
        components,
        tol=s.tolerance,
        reg_covar=s.floor,
        max_iter=1,
        init_params="k-means++",
        warm_start=True,
        random_state=seed,
    )


def _expectation_maximization(mixture: Any, train: Values, most: int, clock: Clock) -> int:
    """Iterates one at a time, so that the clock can end it, and returns how often."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iteration in range(1, most + 1):
            mixture.fit(train)
            if mixture.converged_ or clock.progress >= 1:
                return iteration
    return most


def kernel_density(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Tries bandwidths until the clock is up."""
    clock, s = Clock(minutes), taken(Kernel, settings)
    train = some(split.train, s.max_rows, seed).astype(np.float64)
    search = Search(some(split.validation, s.validation_rows, seed), clock)
    for width in s.bandwidths:
        if search.history and clock.progress >= 1:
            break
        density = KernelDensity(bandwidth=width, rtol=s.relative_tolerance).fit(train)
        search.look(density, {"bandwidth": width})
    return search.fitted(train.size + 1, 1.0, len(search.history))


FIT: dict[str, Callable[[Split, Settings, float, int], Fitted]] = {
    "gaussian-mixture": gaussian_mixture,
    "kernel-density": kernel_density,
}


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Fits the model that the settings name."""
    return FIT[settings["model"]](split, settings, minutes, seed)
