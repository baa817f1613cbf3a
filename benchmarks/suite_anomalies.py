"""Anomalies told from normal rows, which is all that the models were trained on: AUROC."""

from __future__ import annotations

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
    half = order[: len(order) // 2]
    rest = np.setdiff1d(np.arange(len(y)), half)
    return x[half], x[rest], y[rest]


def auroc(scores: Rows, y: Rows) -> float:
    """Returns the chance that an anomaly has less density than a normal row; −inf is the least."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, -np.maximum(scores, np.finfo(np.float64).min)))


def detectors(x: Rows, y: Rows) -> Record:
    """Returns the AUROC of scikit-learn's detectors, on standardized columns."""
    from sklearn.ensemble import IsolationForest
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    train, test, label = parted(x, y)
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train).kneighbors(test)[0]
    mixtures = [GaussianMixture(k, random_state=0).fit(train) for k in COMPONENTS]
    mixture = min(mixtures, key=lambda model: float(model.bic(train)))
    scores = {
        "kNN": -near[:, -1],
        "LOF": LocalOutlierFactor(novelty=True).fit(train).score_samples(test),
        "isolation forest": IsolationForest(random_state=0).fit(train).score_samples(test),
        "Gaussian mixture": mixture.score_samples(test),
    }
    return {name: auroc(values, label) for name, values in scores.items()}
