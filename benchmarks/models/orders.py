"""Orders of the columns: drawn, reversed, or by how much the columns say of one another."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from models.fitted import Rows, Settings

RANKED = 20_000
"""Rows whose ranks tell how columns depend on one another."""


def ordered(settings: Settings, train: Rows, seed: int) -> Settings:
    """Returns the settings with the order spelled out, from random, reversed, greedy, or as 2,0,1."""
    order = settings["order"]
    columns = train.shape[1]
    if order == "random":
        order = np.random.default_rng(seed).permutation(columns).tolist()
    elif order == "reversed":
        order = list(range(columns))[::-1]
    elif order == "greedy":
        order = greedy(train)
    elif isinstance(order, str):
        order = [int(part) for part in order.split(",")]
    return {**settings, "order": order}


def greedy(train: Rows) -> list[int]:
    """Returns an order in which each next column is the one that those before it say most of.

    The first is the one that says most of any others. What is said is the share of the variance of ranks
    that a straight line through the ranks before it explains.
    """
    rows = np.array(train[:: max(1, len(train) // RANKED)])
    with np.errstate(invalid="ignore"):
        linked = np.nan_to_num(np.corrcoef(rankdata(rows, axis=0), rowvar=False))  # a constant says nothing
    np.fill_diagonal(linked, 1.0)
    order = [int((linked**2).sum(0).argmax())]
    while len(order) < len(linked):
        said, rest = linked[np.ix_(order, order)], [k for k in range(len(linked)) if k not in order]
        cross = linked[np.ix_(order, rest)]
        explained = (cross * np.linalg.lstsq(said, cross, rcond=None)[0]).sum(0)
        order.append(rest[int(explained.argmax())])
    return order
