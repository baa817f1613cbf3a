"""Log-densities of a table's rows: the model's, and what lies beyond it, in the table's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from nits.chunks import slices
from nits.model.density import Density
from nits.tables import orders, stacking
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.conditional import Conditional, rows_at_once
from nits.tables.frames import Frame
from nits.tables.schema import Encoded

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

SCORED_AT_ONCE = 8192


def rows(estimator: NITSDensity, frame: Frame) -> NDArray[np.float64]:
    """Returns the log-density of each row, shape (N,)."""
    mixture = orders.differing(estimator.model_)
    if mixture is None:
        return np.asarray(terms(estimator, frame).sum(1))
    coded, given = estimator.schema_.encode(frame), estimator._given(frame)
    each = [_terms(estimator, member, coded, given).sum(1) for member in mixture.members]
    return stacking.mixed(np.stack(each, 1), mixture.log_weights.exp().double().numpy())


def terms(estimator: NITSDensity, frame: Frame) -> NDArray[np.float64]:
    """Returns each column's term of the log-density of each row, shape (N, D)."""
    orders.refuse(orders.differing(estimator.model_))
    coded, given = estimator.schema_.encode(frame), estimator._given(frame)
    return _terms(estimator, estimator.model_, coded, given)


def _terms(
    estimator: NITSDensity, model: Density, coded: Encoded, given: torch.Tensor
) -> NDArray[np.float64]:
    x = torch.from_numpy(coded.numbers)
    parts = []
    with torch.no_grad():
        for some in slices(len(x), SCORED_AT_ONCE):
            context = estimator._context(given[some])
            parts.append(model.log_prob_per_column(x[some], context))
        beyond = log_beyond(estimator, model, coded, given)
    return coded.units(torch.cat(parts).double().numpy(), beyond)


def log_beyond(
    estimator: NITSDensity, model: Density, coded: Encoded, given: torch.Tensor
) -> NDArray[np.float64]:
    """Returns the log-probability of lying beyond an end of entries that do, 0 for all others."""
    found = np.zeros(coded.side.shape)
    which = np.flatnonzero(coded.side.any(1))
    for part in slices(len(which), rows_at_once(model)):
        some = which[part]
        x = torch.from_numpy(coded.numbers[some])
        laws = model.conditionals(x, estimator._context(given[torch.from_numpy(some)]))
        for i, law in enumerate(laws):
            column = Conditional(estimator.schema_.columns[i], law)
            for side in (LOWER, UPPER):
                at = coded.side[some, i] == side
                if at.any():
                    found[some[at], i] = np.log(column.beyond(side)[at])
    return found
