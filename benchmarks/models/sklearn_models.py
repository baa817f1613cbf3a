"""Gaussian mixtures and kernel densities from scikit-learn, the best of a grid by validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from models.fitted import Clock, Fitted, Points, Settings, Values, chunks
from nits.datasets import Split

SCORED_AT_ONCE = 16384


class Candidate(NamedTuple):
    """A fitted estimator, what it has learned in how many steps, and its place on the grid."""

    estimator: Any
    parameters: int
    steps: int
    chosen: Settings


def mixtures(train: Values, settings: Settings, clock: Clock, seed: int) -> Iterator[Candidate]:
    """Yields mixtures with more and more components."""
    columns = train.shape[1]
    each = columns + columns * (columns + 1) // 2 + 1  # mean, covariance and share
    for count in settings["components"]:
        mixture = GaussianMixture(
            count,
            tol=settings["tolerance"],
            reg_covar=settings["floor"],
            max_iter=1,
            init_params="k-means++",
            warm_start=True,
            random_state=seed,
        )
        steps = _iterated(mixture, train, settings["max_iterations"], clock)
        yield Candidate(mixture, count * each - 1, steps, {"components": count})


def _iterated(mixture: Any, train: Values, most: int, clock: Clock) -> int:
    """Iterates one at a time, so that the clock can end it, and returns how often."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iteration in range(1, most + 1):
            mixture.fit(train)
            if mixture.converged_ or clock.progress >= 1:
                return iteration
    return most


def kernels(train: Values, settings: Settings, clock: Clock, seed: int) -> Iterator[Candidate]:
    """Yields kernel densities of several widths."""
    for width in settings["bandwidths"]:
        density = KernelDensity(bandwidth=width, rtol=settings["relative_tolerance"]).fit(train)
        yield Candidate(density, train.size + 1, 1, {"bandwidth": width})


GRIDS: dict[str, Callable[[Values, Settings, Clock, int], Iterator[Candidate]]] = {
    "gaussian-mixture": mixtures,
    "kernel-density": kernels,
}


def score(estimator: Any, rows: Points) -> Values:
    """Returns the nats of rows."""
    parts = (part.astype(np.float64) for part in chunks(rows, SCORED_AT_ONCE))
    return np.concatenate([estimator.score_samples(part) for part in parts])


def some(rows: Points, count: int, seed: int) -> Points:
    """Returns up to `count` rows, drawn without repetition, in the order of the data."""
    size = min(count, len(rows))
    index = np.random.default_rng(seed).choice(len(rows), size, replace=False)
    return np.array(rows[np.sort(index)])


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Tries the grid of the model that the settings name, until the clock is up."""
    clock, steps, highest = Clock(minutes), 0, -math.inf
    history: list[tuple[float, float]] = []
    train = some(split.train, settings["max_rows"], seed).astype(np.float64)
    validation = some(split.validation, settings["validation_rows"], seed)
    for candidate in GRIDS[settings["model"]](train, settings, clock, seed):
        steps += candidate.steps
        value = float(score(candidate.estimator, validation).mean())
        history.append((clock.seconds, value))
        if value > highest:
            highest, best = value, candidate
        if clock.progress >= 1:
            break
    log_prob, epochs = partial(score, best.estimator), float(steps)
    return Fitted(log_prob, best.parameters, epochs, steps, clock.seconds, history, best.chosen)
