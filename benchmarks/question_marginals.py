"""Pairs of columns with all others absent, by the companion, against rows of the joint model."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from results import Record

ROWS, DRAWN = 1_000_000, 200_000
"""Rows of the joint model, and draws of a pair by roles."""

PAIRS, GRID = 10, 24
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


def measured(model: Any, train: Any, test: Any, name: str) -> Record:
    """Returns the KS distance of random pairs, in both columns together."""
    rows, columns = joint(model, ROWS), len(model.schema_.columns)
    every, source = list(combinations(range(columns), 2)), np.random.default_rng(0)
    chosen = [every[k] for k in source.permutation(len(every))[:PAIRS]]
    nothing = torch.zeros(columns, dtype=torch.bool)
    values = torch.zeros(DRAWN, columns)
    found = {}
    for pair in chosen:
        asked = nothing.clone()
        asked[list(pair)] = True
        drawn = model.companion_.sample(values, nothing, 1, asked=asked).double().numpy()
        names = " and ".join(model.schema_.names[i] for i in pair)
        found[names] = apart(rows[:, list(pair)], drawn[:, list(pair)])
    halves = apart(rows[: ROWS // 2, :2], rows[ROWS // 2 :, :2])
    return {"ks": found, "mean": float(np.mean(list(found.values()))), "two_halves": halves}
