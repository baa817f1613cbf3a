"""The probabilities of one column's values and tails from those of the model's numbers.

What equation (28) leaves of the model's law is straight in three parts: with N the model's
distribution function, the lower outermost numbers have a part of its rise, those between them a
larger one, and the upper outermost numbers a part again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nits.tables.columns.column import Column, Numbers

Cdf = Callable[[Numbers], Numbers]


class Bent(NamedTuple):
    """Of each of N rows.

    at: The model's distribution function where the known numbers begin, the lower outermost end,
        the upper outermost begin, and the known numbers end, shape (4, N).
    slopes: What is left of its rise in each of the three parts.
    lower, upper: The probabilities of the tails.
    """

    at: Numbers
    slopes: tuple[float, float, float]
    lower: Numbers
    upper: Numbers

    @classmethod
    def of(cls, column: Column, cdf: Cdf, rows: int) -> Bent:
        """Returns that of a column whose numbers have a distribution function for N rows."""
        ends = column.beyond
        low, high = column.within
        first = _at(cdf, low, rows, 0.0)
        last = _at(cdf, high, rows, 1.0)
        inner = first, last
        if ends.lower:
            inner = np.clip(_at(cdf, ends.lower.outer[1], rows, 0.0), first, last), last
        if ends.upper:
            inner = inner[0], np.clip(_at(cdf, ends.upper.outer[0], rows, 1.0), inner[0], last)
        at = np.stack([first, *inner, last])
        return cls(
            at,
            (ends.lower.left, ends.left, ends.upper.left),
            ends.lower.slope * (at[1] - at[0]) + ends.lower.floor,
            ends.upper.slope * (at[3] - at[2]) + ends.upper.floor,
        )

    def _reach(self) -> Numbers:
        """Returns the probabilities of known values and the lower tail at the four points."""
        rise = np.diff(self.at, axis=0) * np.array(self.slopes)[:, None]
        found: Numbers = self.lower + np.concatenate([np.zeros_like(rise[:1]), rise.cumsum(0)])
        return found

    @property
    def total(self) -> Numbers:
        """The probability of a known value."""
        return np.asarray(self._reach()[-1] + self.upper)

    def up_to(self, below: Numbers, lower: Numbers | float, upper: Numbers | float) -> Numbers:
        """Returns the probability of known values up to a number, and of shares of the tails.

        below: The model's distribution function of the number, shape (*, N).
        """
        found = self.lower * lower + self.upper * upper
        for k, slope in enumerate(self.slopes):
            found = found + slope * (np.clip(below, self.at[k], self.at[k + 1]) - self.at[k])
        return np.asarray(found)

    def inverse(self, target: Numbers) -> Numbers:
        """Returns the model's probabilities of the numbers up to which known values have these."""
        reach, found = self._reach(), np.broadcast_to(self.at[0], target.shape)
        for k, slope in enumerate(self.slopes):
            found = found + np.clip(target - reach[k], 0.0, reach[k + 1] - reach[k]) / slope
        return np.asarray(np.clip(found, self.at[0], self.at[3]))


def _at(cdf: Cdf, number: float, rows: int, otherwise: float) -> Numbers:
    """Returns the distribution function at a number, if it is finite."""
    return cdf(np.full(rows, number)) if np.isfinite(number) else np.full(rows, otherwise)
