"""The distribution of one column given others: quantiles, mean and cdf in the table's units.

Holes left out, a probability u of a known value belongs to the lower tail, to numbers of the model
or to the upper tail, equation (28).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.tables import means
from nits.tables.bent import Bent
from nits.tables.columns import plainly
from nits.tables.columns.column import LOWER, UPPER, Column, Numbers
from nits.tables.columns.first import First
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Values

LEVELS = 1000
"""Quantiles whose mean is the mean of a column of an old file."""

AT_ONCE = 2**18
"""Quantiles that are computed together."""


WEIGHTS = 2**23
"""PNN weights of conditional distributions that are held at once."""


def rows_at_once(density: Density) -> int:
    """Returns of how many rows the conditional distributions of all columns fit into memory."""
    return max(8, min(512, WEIGHTS // max(1, density.weights_per_row)))


@dataclass(frozen=True)
class Conditional:
    """What is known of a column given each of N rows.

    column: What it is.
    law: The model's distribution of its numbers, batch shape (N,).
    """

    column: Column
    law: Any

    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[Any]:
        """Returns the column's values at probabilities, shape (N, len(levels))."""
        rows = max(1, AT_ONCE // max(1, len(self)))
        every = np.array(list(levels), np.float64)[:, None]
        parts = [self._at(every[i : i + rows]) for i in range(0, len(every), rows)]
        return np.concatenate(parts).T

    def __len__(self) -> int:
        return int(self.law.batch_shape[0])

    def mean(self) -> NDArray[Any]:
        """Returns the mean of each row's distribution, shape (N,): a time for times."""
        column = self.column
        if isinstance(column, First):
            return np.asarray(self.quantiles((np.arange(LEVELS) + 0.5) / LEVELS).mean(1))
        if not isinstance(column, Numeric) or column.facts.ordered:
            raise ValueError(f"column {column.name!r} is categorical, so it has no mean.")
        found = means.mean(column, self._model_cdf, len(self))
        if column.unit is None:
            return found + column.ruler.base
        ticks = np.rint(found).astype(np.int64) + column.ruler.base
        return plainly.values(ticks, np.zeros(len(self), bool), column.facts, column.unit).array

    def cdf(self, values: Values) -> Numbers:
        """Returns the probability of a known value at most as large, shape (N,); NaN for holes."""
        numbers, beyond = self.column.reach(values)
        bent = self.bent()
        found = bent.up_to(self._model_cdf(numbers), *beyond) / bent.total
        return np.where(values.missing, np.nan, found)

    def beyond(self, side: int) -> Numbers:
        """Returns the probability of lying beyond an end, holes and all, shape (N,)."""
        bent = self.bent()
        return bent.lower if side == LOWER else bent.upper

    def bent(self) -> Bent:
        """Returns how the model's probabilities become those of known values and tails."""
        return Bent.of(self.column, self._model_cdf, len(self))

    def _model_cdf(self, numbers: Numbers) -> Numbers:
        with torch.no_grad():
            found: torch.Tensor = self.law.cdf(torch.from_numpy(numbers.astype(np.float32)))
        return found.double().numpy()

    def _at(self, u: Numbers) -> NDArray[Any]:
        """Returns each row's values at probabilities u, shape (levels, 1), as (levels, N)."""
        bent = self.bent()
        target = u * bent.total
        inner = bent.inverse(target)
        with torch.no_grad():
            numbers = self.law.icdf(torch.from_numpy(inner.astype(np.float32))).double().numpy()
        found = self.column.decode(numbers.ravel(), np.random.default_rng(0)).array
        found = found.reshape(numbers.shape)
        over = target - (bent.total - bent.upper)
        for side, at, v in (
            (LOWER, target < bent.lower, 1 - target / np.maximum(bent.lower, 1e-300)),
            (UPPER, (over > 0) & (bent.upper > 0), over / np.maximum(bent.upper, 1e-300)),
        ):
            if at.any():
                found[at] = self.column.drawn_beyond(side, np.clip(v[at], 0.0, 1.0))
        return found
