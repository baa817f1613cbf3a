"""A Gaussian mixture and a kernel density from scikit-learn, each the best of a grid by validation."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from models.fitted import VALIDATION_ROWS, Clock, Fitted, Points, Settings, Values, chunks
from nits.datasets import Split

SCORED_AT_ONCE = 16384


class Search:
    """The best estimator so far, and how validation went."""

    def __init__(self, validation: Points, clock: Clock) -> None:
        self.validation, self.clock = validation, clock
        self.best: Any = None
        self.value = -math.inf
        self.history: list[tuple[float, float]] = []

    @property
    def over(self) -> bool:
        """Whether the clock is up and there is something to show."""
        return bool(self.history) and self.clock.progress >= 1

    def look(self, estimator: Any) -> None:
        """Scores an estimator on validation and keeps it if it is the best so far."""
        value = float(score(estimator, self.validation).mean())
        self.history.append((self.clock.seconds, value))
        if self.best is None or value > self.value:
            self.best, self.value = estimator, value

    def fitted(self, parameters: int, steps: int, epochs: float, chosen: Settings) -> Fitted:
        """Returns the best estimator."""
        log_prob = partial(score, self.best)
        seconds, history = self.clock.seconds, self.history
        return Fitted(log_prob, parameters, epochs, steps, seconds, history, chosen)


def score(estimator: Any, rows: Points) -> Values:
    """Returns the nats of rows."""
    parts = (part.astype(np.float64) for part in chunks(rows, SCORED_AT_ONCE))
    return np.concatenate([estimator.score_samples(part) for part in parts])


def some(rows: Points, count: int, seed: int) -> Points:
    """Returns up to `count` rows, drawn without repetition, in the order of the data."""
    if len(rows) <= count:
        return np.array(rows)
    index = np.random.default_rng(seed).choice(len(rows), count, replace=False)
    return np.array(rows[np.sort(index)])


def gaussian_mixture(split: Split, settings: Settings, clock: Clock, seed: int) -> Fitted:
    """Fits mixtures with more and more components until the clock is up."""
    train = some(split.train, settings["max_rows"], seed).astype(np.float64)
    search = Search(np.array(split.validation[:VALIDATION_ROWS]), clock)
    iterations = 0
    for count in settings["components"]:
        if search.over:
            break
        mixture = GaussianMixture(
            count,
            tol=settings["tolerance"],
            reg_covar=settings["floor"],
            max_iter=1,
            init_params="k-means++",
            warm_start=True,
            random_state=seed,
        )
        iterations += _iterated(mixture, train, settings["max_iterations"], clock)
        search.look(mixture)
    components, columns = search.best.n_components, train.shape[1]
    each = columns + columns * (columns + 1) // 2 + 1  # mean, covariance and share
    chosen = {"components": components}
    return search.fitted(components * each - 1, iterations, float(iterations), chosen)


def _iterated(mixture: Any, train: Values, most: int, clock: Clock) -> int:
    """Iterates one at a time, so that the clock can end it, and returns how often."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iteration in range(1, most + 1):
            mixture.fit(train)
            if mixture.converged_ or clock.progress >= 1:
                return iteration
    return most


def kernel_density(split: Split, settings: Settings, clock: Clock, seed: int) -> Fitted:
    """Tries bandwidths until the clock is up."""
    train = some(split.train, settings["max_rows"], seed).astype(np.float64)
    search = Search(some(split.validation, settings["validation_rows"], seed), clock)
    tolerance = settings["relative_tolerance"]
    for width in settings["bandwidths"]:
        if search.over:
            break
        search.look(KernelDensity(bandwidth=width, rtol=tolerance).fit(train))
    chosen = {"bandwidth": search.best.bandwidth}
    return search.fitted(train.size + 1, len(search.history), 1.0, chosen)


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Fits the model that the settings name."""
    by_name = {"gaussian-mixture": gaussian_mixture, "kernel-density": kernel_density}
    return by_name[settings["model"]](split, settings, Clock(minutes), seed)
