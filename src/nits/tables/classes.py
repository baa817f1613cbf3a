"""Probabilities of classes: the values of a column without an order, or with a declared one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.tables import frames
from nits.tables.columns import plainly
from nits.tables.columns.column import Column, Numbers
from nits.tables.conditional import Conditional

Classes = NDArray[Any]


def of(column: Column) -> Classes:
    """Returns the values of a column of categories, pooled ones last."""
    if column.facts.ordered and column.facts.levels is not None:
        found = column.facts.levels
    else:
        levels: Any = getattr(column, "levels", ())
        found = (*levels, *getattr(column, "pooled", ()))
    return plainly.array(found)


def probabilities(law: Conditional, classes: Classes) -> Numbers:
    """Returns the probability of each class given each of N rows, shape (N, C)."""
    coded = law.column.encode(frames.plain(classes))
    numbers = torch.from_numpy(coded.numbers.astype(np.float32)).unsqueeze(1)
    with torch.no_grad():
        log_prob = law.law.log_prob(numbers.expand(-1, len(law))).double().numpy()
    # Declared classes that no row had are no numbers of the model, and have no probability.
    known = np.where(coded.fixed, -np.inf, coded.log_prob)
    shares = np.exp(np.where(np.isneginf(known), -np.inf, log_prob.T + known))
    return np.asarray(shares / shares.sum(1, keepdims=True))
