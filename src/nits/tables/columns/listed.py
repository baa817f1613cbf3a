"""Numbers that are told apart but not measured: observed values, with or without an order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nits.heads import Categorical, Cells, Head, Inflated, ListedEdges
from nits.tables.columns import plainly
from nits.tables.columns.column import BODY, Flags, Numbers
from nits.tables.columns.numeric import Numeric
from nits.tables.evidence import grids

MISSING = -1.0
"""The number of a hole where numbers count from 0."""


@dataclass(frozen=True)
class Listed(Numeric):
    """A column of observed values, each with a probability; its number is its position.

    listed: The values, ascending, in the column's plain numbers.
    """

    listed: tuple[Any, ...]

    def ends(self) -> tuple[float, float]:
        """Returns the first and the last position."""
        return 0.0, len(self.listed) - 1.0

    def place(self, plain: NDArray[Any]) -> tuple[Numbers, Flags]:
        """Returns the position of the nearest value, and whether it is that value.

        Beyond the listed values those count that lie on their grid, if there is one.
        """
        k, exact = grids.place(plainly.array(self.listed), plain)
        beyond = self.ruler.side(plain) != BODY
        on = True if self.ruler.grid is None else self.ruler.grid.holds(plain)
        return k.astype(np.float64), exact | (beyond & on)

    def log_measure(self, plain: NDArray[Any], numbers: Numbers) -> Numbers:
        """Returns 0: values have probabilities."""
        return np.zeros(len(numbers))

    def log_beyond(self, x: Numbers, side: int) -> Numbers:
        """Returns log-probabilities of recorded values beyond an end."""
        return self.ruler.log_mass(x, side)

    def values(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the listed values."""
        return plainly.array(self.listed)[np.clip(numbers, *self.ends()).astype(np.int64)]

    def amount(self, numbers: Numbers) -> Numbers:
        """Returns the listed value at each position, less the base; between two, in between."""
        listed = self.ruler.numbers(plainly.array(self.listed))
        return np.asarray(np.interp(numbers, np.arange(len(listed)), listed))

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        return {**super().to_dict(), "listed": list(self.listed)}


@dataclass(frozen=True)
class Codes(Listed):
    """Values whose order says nothing: codes, and numbers that stand for names."""

    kind: ClassVar[str] = "categorical"
    record: ClassVar[str] = "codes"

    @property
    def missing_number(self) -> float:
        """One more than the last position."""
        return float(len(self.listed))

    @property
    def within(self) -> tuple[float, float]:
        """The numbers up to the last position: that of a hole comes after it."""
        return -math.inf, len(self.listed) - 1.0 if self.optional else math.inf

    @property
    def levels(self) -> tuple[Any, ...]:
        """The values."""
        return self.listed

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a softmax over the values, and over holes if there were any."""
        return Categorical(len(self.listed) + self.optional)


@dataclass(frozen=True)
class Ordered(Listed):
    """Values whose order matters: an uneven grid, each cell as wide as the value's share.

    shares: Of the values, when training starts.
    """

    kind: ClassVar[str] = "ordered"
    record: ClassVar[str] = "ordered"
    shares: tuple[float, ...]

    @property
    def missing_number(self) -> float:
        """One less than the first position."""
        return MISSING

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN whose masses of the cells are the probabilities."""
        cells = Cells(ListedEdges(self._edges()), hidden, knots)
        return Inflated(cells, (MISSING,)) if self.optional else cells

    def _edges(self) -> tuple[float, ...]:
        """Returns the edges: uniform numbers in these cells have mean 0 and deviation 1."""
        reach = np.concatenate([[0.0], np.cumsum(self.shares)])
        return tuple(((reach / reach[-1] - 0.5) * math.sqrt(12)).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        return {**super().to_dict(), "shares": list(self.shares)}
