"""What sampled rows are worth: told from real ones, trained on, compared by column, by range."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas
from results import Record
from suite_densities import step_of

MOST_TRAINED = 50_000
"""Rows, real or sampled, that the model which is tested on real rows is trained on."""

AT_ONCE = 50_000
TARGETS = {
    "diamonds": "price",
    "magic_gamma": "class",
    "beijing_air": "PM2.5",
    "gas_turbine": "NOX",
}
"""What is predicted from a table's other columns; in others, the last column of numbers."""

Sample = Callable[[int], Any]


def features(*tables: Any) -> list[Any]:
    """Returns tables whose strings are categories, the same in all of them."""
    both = pandas.concat(tables)
    strings = both.select_dtypes(exclude="number")
    kinds = strings.astype("category").dtypes.to_dict()
    return [table.astype(kinds) for table in tables]


def detection(real: Any, sampled: Any) -> float:
    """Returns the AUC, over five folds, with which gradient boosting tells sampled rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    x = pandas.concat(features(real, sampled), ignore_index=True)
    label = np.repeat([0, 1], [len(real), len(sampled)])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = HistGradientBoostingClassifier(random_state=0)
    found = cross_val_score(model, x, label, scoring="roc_auc", cv=folds)
    return float(found.mean())


def transfer(train: Any, test: Any, target: str) -> float:
    """Returns R², or the AUC of a target with two values, of boosting trained on these rows."""
    from sklearn import ensemble
    from sklearn.metrics import r2_score, roc_auc_score

    train, test = (part.dropna(subset=[target]) for part in (train, test))
    x, y = features(*(part.drop(columns=target) for part in (train, test)))
    if test[target].nunique() == 2:
        model = ensemble.HistGradientBoostingClassifier(random_state=0).fit(x, train[target])
        return float(roc_auc_score(test[target], model.predict_proba(y)[:, 1]))
    model = ensemble.HistGradientBoostingRegressor(random_state=0).fit(x, train[target])
    return float(r2_score(test[target], model.predict(y)))


def quality(real: Any, sampled: Any) -> Record:
    """Returns sdmetrics' scores of columns' shapes and pairs' trends, if it is installed."""
    if find_spec("sdmetrics") is None:
        return {}
    from sdmetrics.reports.single_table import QualityReport

    numeric = set(real.select_dtypes("number"))
    kinds = {c: {"sdtype": "numerical" if c in numeric else "categorical"} for c in real}
    report = QualityReport()
    report.generate(real, sampled, {"columns": kinds}, verbose=False)
    shapes, trends = report.get_properties()["Score"]
    return {"shapes": float(shapes), "trends": float(trends)}


def worth(sample: Sample, train: Any, test: Any, name: str) -> Record:
    """Returns the figures of rows that are sampled after training on `train`."""
    target = TARGETS.get(name) or list(test.select_dtypes("number"))[-1]
    drawn = sample(len(test))
    return {
        "detection": detection(test, drawn),
        "target": target,
        "transfer": transfer(sample(min(MOST_TRAINED, len(train))), test, target),
        **quality(test, drawn),
    }


def ranges(sample: Sample, train: Any, count: int) -> Record:
    """Returns how many of many sampled values lie beyond a column's range, or cannot be right.

    Wrong are: another type; infinite or missing values, categories and negative numbers where there
    were none; and values between the steps of a column that has steps.
    """
    every = {name: _limits(train[name]) for name in train}
    found: Record = {name: {"known": int(train[name].notna().sum())} for name in train}
    for start in range(0, count, AT_ONCE):
        drawn = sample(min(AT_ONCE, count - start))
        for name in train:
            for key, value in _counted(drawn[name], every[name]).items():
                found[name][key] = found[name].get(key, 0) + value
    return {"samples": count, "columns": found}


def _limits(column: Any) -> Record:
    known = column.dropna().to_numpy()
    numeric = column.dtype.kind in "iuf"
    return {
        "dtype": column.dtype,
        "holes": bool(column.isna().any()),
        "ends": (known.min(), known.max()) if numeric else None,
        "step": step_of(known) if numeric else 0.0,
        "levels": None if numeric else set(known.tolist()),
    }


def _counted(column: Any, limits: Record) -> dict[str, int]:
    known = column.dropna()
    holes = 0 if limits["holes"] else len(column) - len(known)
    if column.dtype != limits["dtype"]:
        return {"wrong": len(column)}
    if limits["ends"] is None:
        return {"wrong": holes + int((~known.isin(limits["levels"])).sum())}
    (low, high), step = limits["ends"], limits["step"]
    x = known[np.isfinite(known)].to_numpy()
    wrong = (x < 0) & (low >= 0)
    if step:
        wrong |= np.abs(x / step - np.rint(x / step)) > 1e-6 * np.maximum(1, np.abs(x / step))
    return {
        "wrong": holes + len(known) - len(x) + int(wrong.sum()),
        "below": int((x < low).sum()),
        "above": int((x > high).sum()),
    }
