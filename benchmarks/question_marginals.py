"""Pairs of columns with all others left out, against a million rows of the joint model.

Twice: as `model.given().probability` answers, which is what a user gets, at random corners of each
pair; and by the companion alone, which only proposes to these answers. How far data are from both
shows what is left to learn.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from results import Record

from nits.tables import zones
from nits.tables.questions import asked
from nits.tables.questions.conditions import Range

ROWS, DRAWN = 1_000_000, 200_000
"""Rows of the joint model, and draws of a pair by roles."""

PAIRS, GRID, CORNERS = 10, 24, 16
Numbers = NDArray[np.float64]


def joint(model: Any, rows: int) -> Numbers:
    """Returns rows of the joint model in its own numbers, some at a time."""
    source = torch.Generator().manual_seed(0)
    parts = [model.model_.sample(50_000, generator=source) for _ in range(-(-rows // 50_000))]
    return torch.cat(parts).double().numpy()[:rows]


def apart(a: Numbers, b: Numbers) -> float:
    """Returns the greatest difference of two joint cdfs on a grid of the first one's quantiles."""
    edges = [np.unique(np.quantile(a[:, k], np.linspace(0, 1, GRID))) for k in (0, 1)]
    found = []
    for x in (a, b):
        cells = [np.searchsorted(edges[k], x[:, k]) for k in (0, 1)]
        sizes = [len(edge) + 1 for edge in edges]
        count = np.bincount(cells[0] * sizes[1] + cells[1], minlength=sizes[0] * sizes[1])
        found.append(count.reshape(sizes).cumsum(0).cumsum(1) / len(x))
    return float(np.abs(found[0] - found[1]).max())


def corner(column: Any, values: Any, source: np.random.Generator) -> Any:
    """Returns a condition on a column: at most a random value of it, or some of its categories."""
    (value,) = values.iloc[[int(source.integers(len(values)))]].tolist()
    if column.kind == "categorical" and isinstance(value, str | bool):
        levels = values.unique().tolist()
        return {value, *(level for level in levels if source.random() < 1 / 2)}
    return Range(None, value, to_high=True)


def inside(model: Any, i: int, told: Any, rows: Numbers) -> NDArray[np.bool_]:
    """Returns which rows, in the model's numbers, meet a condition on a column."""
    name = model.schema_.names[i]
    found = asked.narrowed(asked.empty(model), asked.gathered(model, {name: told}))
    if found is None:
        raise ValueError(f"{name} {told} must be possible, but is not.")
    parts = [(rows[:, i] > low) & (rows[:, i] <= high) for low, high in found.events[i].numbers]
    met: NDArray[np.bool_] = np.any(parts, axis=0)
    return met


def answered(model: Any, pair: tuple[int, int], rows: Numbers, train: Any) -> Record:
    """Returns how far probabilities of a pair's corners are from the rows' shares."""
    source, gaps, errors, sizes = np.random.default_rng(pair), [], [], []
    for _ in range(CORNERS):
        told = {}
        for i in pair:
            column = model.schema_.columns[i]
            told[i] = corner(column, train[column.name].dropna(), source)
        share = float(np.all([inside(model, i, one, rows) for i, one in told.items()], 0).mean())
        found = model.given().probability({model.schema_.names[i]: o for i, o in told.items()})
        gaps.append(abs(found.estimate - share))
        errors.append(math.hypot(found.error, math.sqrt(share * (1 - share) / len(rows))))
        sizes.append(float(found.error))
    beyond = 4 / (len(train) + 1)  # the tails of two columns, which are not in the rows
    close = int(np.sum(np.array(gaps) <= 3 * np.array(errors) + beyond))
    return {"ks": max(gaps), "error": max(sizes), "within_3_errors": close}


def encoded(model: Any, train: Any) -> Numbers:
    """Returns training rows in the model's numbers."""
    frame = zones.read(train[list(model.schema_.names)])
    every = [column.encode(frame.columns[column.name]).numbers for column in model.schema_.columns]
    return np.stack(every, 1)


def measured(model: Any, train: Any, test: Any, name: str) -> Record:
    """Returns the KS distances of random pairs, in both columns together."""
    rows, columns = joint(model, ROWS), len(model.schema_.columns)
    data = encoded(model, train)
    every, source = list(combinations(range(columns), 2)), np.random.default_rng(0)
    chosen = [every[k] for k in source.permutation(len(every))[:PAIRS]]
    nothing = torch.zeros(columns, dtype=torch.bool)
    values = torch.zeros(DRAWN, columns)
    found: dict[str, Record] = {"ks": {}, "answers": {}, "joint_to_data": {}, "roles_to_data": {}}
    for pair in chosen:
        asked_for = nothing.clone()
        asked_for[list(pair)] = True
        drawn = model.companion_.sample(values, nothing, 1, asked=asked_for).double().numpy()
        names, at = " and ".join(model.schema_.names[i] for i in pair), list(pair)
        found["ks"][names] = apart(rows[:, at], drawn[:, at])
        found["answers"][names] = answered(model, pair, rows, train)
        found["joint_to_data"][names] = apart(data[:, at], rows[:, at])
        found["roles_to_data"][names] = apart(data[:, at], drawn[:, at])
    halves = apart(rows[: ROWS // 2, :2], rows[ROWS // 2 :, :2])
    asked_mean = float(np.mean([one["ks"] for one in found["answers"].values()]))
    return {
        **found,
        "mean": float(np.mean(list(found["ks"].values()))),
        "answers_mean": asked_mean,
        "corners": CORNERS * PAIRS,
        "within_3_errors": sum(one["within_3_errors"] for one in found["answers"].values()),
        "two_halves": halves,
    }
