"""Anomalies told from normal rows, which is all that the models were trained on: AUROC."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Record

Rows = NDArray[Any]
COMPONENTS = (1, 2, 4, 8)
NEIGHBOURS = 5


def parted(x: Rows, y: Rows) -> tuple[Rows, Rows, Rows]:
    """Returns a random half of the normal rows, all others, and which of these are anomalies."""
    order = np.random.default_rng(0).permutation(np.flatnonzero(y == 0))
    rest = np.setdiff1d(np.arange(len(y)), order[: len(order) // 2])
    return x[order[: len(order) // 2]], x[rest], y[rest]


def auroc(scores: Rows, y: Rows) -> float:
    """Returns the chance that an anomaly has less density than a normal row; −inf is the least."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, -np.maximum(scores, np.finfo(np.float64).min)))


def detectors(x: Rows, y: Rows) -> Record:
    """Returns the AUROC of scikit-learn's detectors, on standardized columns."""
    from sklearn.preprocessing import StandardScaler

    train, test, label = parted(x, y)
    scaler = StandardScaler().fit(train)
    rows = scaler.transform(train), scaler.transform(test)
    return {name: auroc(scores(*rows), label) for name, scores in DETECTORS.items()}


def _neighbours(train: Rows, test: Rows) -> Rows:
    from sklearn.neighbors import NearestNeighbors

    distances: Rows = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train).kneighbors(test)[0]
    return -distances[:, -1]


def _factor(train: Rows, test: Rows) -> Rows:
    from sklearn.neighbors import LocalOutlierFactor

    scores: Rows = LocalOutlierFactor(novelty=True).fit(train).score_samples(test)
    return scores


def _forest(train: Rows, test: Rows) -> Rows:
    from sklearn.ensemble import IsolationForest

    scores: Rows = IsolationForest(random_state=0).fit(train).score_samples(test)
    return scores


def _mixture(train: Rows, test: Rows) -> Rows:
    from sklearn.mixture import GaussianMixture

    every: Iterable[Any] = (GaussianMixture(k, random_state=0).fit(train) for k in COMPONENTS)
    scores: Rows = min(every, key=lambda model: float(model.bic(train))).score_samples(test)
    return scores


DETECTORS: dict[str, Callable[[Rows, Rows], Rows]] = {
    "kNN": _neighbours,
    "LOF": _factor,
    "isolation forest": _forest,
    "Gaussian mixture": _mixture,
}
