"""The probability of random boxes, against their share of the whole table: q-errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from results import Record

BOXES = 200
COLUMNS = 1, 5
"""Least and most columns of a box."""

WIDTHS = 0.1, 0.9
"""Least and most share of a column's ranks that a range covers."""


def box(table: Any, source: np.random.Generator) -> dict[str, Any]:
    """Draws conditions on some columns that a random row meets."""
    row = table.iloc[int(source.integers(len(table)))]
    known = [name for name in table if not pandas.isna(row[name])]
    count = int(source.integers(COLUMNS[0], COLUMNS[1] + 1))
    found: dict[str, Any] = {}
    for name in source.choice(known, min(count, len(known)), replace=False):
        column = table[name].dropna()
        if column.dtype.kind in "if":
            rank = float((column < row[name]).mean())
            half = source.uniform(*WIDTHS) / 2
            ends = column.quantile([max(rank - half, 0), min(rank + half, 1)], "nearest")
            low, high = (float(end) for end in ends)
            found[str(name)] = (min(low, row[name]), max(np.nextafter(high, np.inf), high + 1e-9))
            if found[str(name)][1] <= row[name]:
                found[str(name)] = (found[str(name)][0], float(np.nextafter(row[name], np.inf)))
        else:
            levels = [level for level in column.unique() if source.random() < 1 / 2]
            found[str(name)] = {row[name], *levels}
    return found


def share(table: Any, conditions: dict[str, Any]) -> float:
    """Returns the share of rows that meet conditions."""
    inside = np.ones(len(table), bool)
    for name, told in conditions.items():
        if isinstance(told, set):
            inside &= table[name].isin(told).to_numpy()
        else:
            inside &= ((table[name] >= told[0]) & (table[name] < told[1])).to_numpy()
    return float(inside.mean())


def measured(model: Any, train: Any, test: Any, name: str) -> Record:
    """Returns quantiles of the q-error, max(estimate / truth, truth / estimate)."""
    table, source = pandas.concat([train, test]), np.random.default_rng(0)
    lacking = [c for c in table if c not in model.schema_.names]
    table = table.drop(columns=lacking)
    errors, z, rare = [], [], 0
    for _ in range(BOXES):
        conditions = box(table, source)
        truth, found = share(table, conditions), model.probability(conditions)
        estimate = max(float(found.estimate), 1 / len(table))
        errors.append(max(estimate / truth, truth / estimate))
        rare += truth < 1e-3
        z.append(float(found.error) / estimate)
    return {**quantiles(np.array(errors)), "rarer_than_1e-3": rare, "error": float(np.median(z))}


def quantiles(errors: NDArray[np.float64]) -> Record:
    """Returns the median and the upper quantiles."""
    levels = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: float(np.quantile(errors, level)) for name, level in levels.items()}
