"""A class given all other columns by the joint model, beside gradient boosting trained for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from results import Record
from suite_samples import features

TARGETS = {"diamonds": "cut", "magic_gamma": "class"}
MOST = 5000
"""Test rows that are asked about."""


def measured(model: Any, train: Any, test: Any, name: str) -> Record:
    """Returns the AUC of both, that of several classes one against the rest, and the log loss."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import log_loss

    target = TARGETS[name]
    test = test.iloc[:MOST]
    x, rest = features(train.drop(columns=target), test.drop(columns=target))
    boosted = HistGradientBoostingClassifier(random_state=0).fit(x, train[target])
    classes = boosted.classes_
    asked = model.given_rows(test.drop(columns=target)).proba(target)
    levels = list(model.given().proba(target))
    ours = np.asarray(asked)[:, [levels.index(level) for level in classes]]
    both = {"nits": ours, "boosting": boosted.predict_proba(rest)}
    return {
        "target": target,
        "test_rows": len(test),
        "exact": bool(np.isinf(asked.ess).all()),
        "auc": {who: _auc(test[target], p, classes) for who, p in both.items()},
        "log_loss": {who: float(log_loss(test[target], p)) for who, p in both.items()},
    }


def _auc(truth: Any, proba: Any, classes: Any) -> float:
    from sklearn.metrics import roc_auc_score

    if len(classes) == 2:
        return float(roc_auc_score(truth, proba[:, 1]))
    proba = proba / proba.sum(1, keepdims=True)
    return float(roc_auc_score(truth, proba, multi_class="ovr", labels=classes))
