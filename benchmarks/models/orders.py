"""Orders of the columns: drawn, reversed, or by how much the columns say of one another."""

from __future__ import annotations

import numpy as np

from models.fitted import Rows, Settings
from nits.tables.orders import greedy


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
