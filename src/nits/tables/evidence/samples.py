"""The values of a numeric column as the evidence reads them: distinct numbers, counts, folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

ROWS = 20_000
"""Rows that the evidence is taken from, evenly spread over the column."""

FOLDS = 5

TESTED = 1_000
"""Distinct values of a fold that are scored, evenly spread; more add cost and hardly evidence."""

OUTER = 16
"""Values at either end of a fold that are always scored, for what a candidate makes of outliers."""


@dataclass(frozen=True)
class Trial:
    """One fold held out.

    train: How often each distinct value occurs in the other folds, shape (K,).
    at: Places of the distinct values that are scored, shape (T,).
    rows: How many held-out rows each of them has.
    factor: How many values each of them stands for.
    """

    train: NDArray[np.int64]
    at: NDArray[np.intp]
    rows: NDArray[np.int64]
    factor: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Rows trained on."""
        return int(self.train.sum())

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which scored values lie beyond the range of the others."""
        first, last = np.flatnonzero(self.train)[[0, -1]]
        found: NDArray[np.bool_] = (self.at < first) | (self.at > last)
        return found


@dataclass(frozen=True)
class Sample:
    """Distinct values x, shape (K,), ascending, and their rows in each fold, shape (K, F)."""

    x: Numbers
    folds: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each value."""
        found: NDArray[np.int64] = self.folds.sum(1)
        return found

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.folds.sum())

    def trials(self) -> list[Trial]:
        """Returns each fold held out in turn."""
        return [self._trial(fold) for fold in range(self.folds.shape[1])]

    def _trial(self, fold: int) -> Trial:
        held = self.folds[:, fold]
        at = np.flatnonzero(held)
        stride = max(1, -(-len(at) // TESTED))
        chosen = np.zeros(len(at), np.int64)
        chosen[OUTER + fold % stride : len(at) - OUTER : stride] = stride
        chosen[:OUTER] = chosen[len(at) - min(OUTER, len(at)) :] = 1
        at, factor = at[chosen > 0], chosen[chosen > 0]
        return Trial(self.counts - held, at, held[at], factor)

    @classmethod
    def of(cls, x: Numbers) -> Sample:
        """Returns the sample that evidence is taken from: some rows, the extremes among them."""
        return cls.counted(x if len(x) <= ROWS else x[_spread(x)])

    @classmethod
    def counted(cls, rows: Numbers) -> Sample:
        """Returns the sample of these rows."""
        distinct, place = np.unique(rows, return_inverse=True)
        parts = min(FOLDS, len(rows))
        fold = np.random.default_rng(0).permutation(len(rows)) % parts
        counts = np.bincount(place * parts + fold, minlength=len(distinct) * parts)
        return cls(distinct, counts.reshape(len(distinct), parts))


def _spread(x: Numbers) -> NDArray[np.intp]:
    rows = np.linspace(0, len(x) - 1, ROWS).astype(np.intp)
    return np.union1d(rows, [np.argmin(x), np.argmax(x)])
