"""The section about telling real rows from sampled ones: what a classifier finds, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nits.report import axes
from nits.report.subject import CannotSay, Subject
from nits.tables.columns import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame

Numbers = NDArray[np.float64]

FOLDS = 5
MOST_ROWS = 2500
"""Rows of each sort that the classifier learns from."""

LEAST_ROWS = 40
MOST_SEEN = 10
ROUNDS = 60


@dataclass(frozen=True)
class Seen:
    """How much the AUC falls when a column of held-out rows is shuffled."""

    name: str
    fall: float


@dataclass(frozen=True)
class Detection:
    """How well gradient boosting tells sampled rows from real ones, held-out folds throughout.

    auc, error: The area under the ROC curve: 0.5 is chance, 1 is never wrong. The mean over folds
        and its standard error.
    chance: What an AUC of a classifier that knows nothing exceeds in 5 % of cases.
    folds: That of each fold.
    seen: The columns that it told rows by, the most telling first.
    rows: How many rows of each sort it had.
    curve: The ROC curve: false alarms and found rows, shape (P, 2).
    """

    auc: float
    error: float
    chance: float
    folds: tuple[float, ...]
    seen: tuple[Seen, ...]
    rows: int
    curve: Numbers


def measured(subject: Subject) -> Detection:
    """Trains a classifier on four fifths of real and sampled rows, and asks it for the others."""
    n = min(len(subject.rows), MOST_ROWS)
    if n < LEAST_ROWS:
        raise CannotSay(
            f"A classifier needs at least {LEAST_ROWS} rows to learn from, and there are {n}."
        )
    source = np.random.default_rng(subject.seed)
    columns = [*subject.columns, *subject.given]
    parts = []
    for frame in (subject.rows.frame, subject.drawn):
        some = np.sort(source.choice(len(frame), n, replace=False))
        parts.append(features(columns, frame.take(some)))
    x, y = np.concatenate(parts), np.repeat([0, 1], n)
    return _judged(columns, x, y, subject.seed)


def features(columns: list[Column], frame: Frame) -> Numbers:
    """Returns what the classifier reads of rows: numbers as they are, categories by position.

    Categories are no categories to it: splits by sets of many levels learn noise by heart.
    """
    found = []
    for column in columns:
        values = frame.columns[column.name]
        if isinstance(column, Numeric):
            x = np.where(values.missing, np.nan, axes.plain(column, values).astype(np.float64))
        else:
            coded = column.encode(values)
            x = np.where(coded.unseen, np.nan, coded.numbers)
        found.append(x)
    return np.stack(found, 1)


def _judged(columns: list[Column], x: Numbers, y: NDArray[np.int64], seed: int) -> Detection:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    aucs, score = [], np.zeros(len(y))
    falls = np.zeros((FOLDS, x.shape[1]))
    source = np.random.default_rng(seed)
    for k, (fitted, kept) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
    ):
        model = HistGradientBoostingClassifier(
            max_iter=ROUNDS,
            max_leaf_nodes=15,
            early_stopping=False,
            random_state=seed,
        ).fit(x[fitted], y[fitted])
        score[kept] = model.predict_proba(x[kept])[:, 1]
        aucs.append(float(roc_auc_score(y[kept], score[kept])))
        for j in range(x.shape[1]):
            shuffled = x[kept].copy()
            shuffled[:, j] = shuffled[source.permutation(len(kept)), j]
            falls[k, j] = aucs[-1] - roc_auc_score(y[kept], model.predict_proba(shuffled)[:, 1])
    fall = falls.mean(0)
    ranked = np.argsort(-fall)[:MOST_SEEN].tolist()
    n = len(y) // 2
    return Detection(
        float(np.mean(aucs)),
        float(np.std(aucs, ddof=1) / len(aucs) ** 0.5),
        0.5 + 1.645 * ((2 * n + 1) / (12 * n * n)) ** 0.5,
        tuple(aucs),
        tuple(Seen(columns[j].name, float(fall[j])) for j in ranked),
        n,
        _curve(y, score),
    )


def _curve(y: NDArray[np.int64], score: Numbers) -> Numbers:
    """Returns about a hundred points of the ROC curve of all folds together."""
    from sklearn.metrics import roc_curve

    false_alarms, found, _ = roc_curve(y, score)
    some = np.unique(np.linspace(0, len(found) - 1, 100).astype(int))
    return np.stack([false_alarms[some], found[some]], 1)
