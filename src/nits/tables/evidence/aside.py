"""Columns set aside before a table is modelled: empty, constant, identifiers, saved indices."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import grids

SAVED = re.compile(r"Unnamed: \d+|__index_level_\d+__")
"""Names under which pandas saves an index that had none."""

NEARLY_ALL = 0.9
"""Share of the rows with a string that no other row has, from which strings are identifiers."""

EXPECTED = 9.0
"""Pairs of equal numbers to be expected by chance at least, whose absence has probability 1e-4."""


MANY = 8
"""Rows from which numbers in order are no chance: one in 8! orders."""


class Aside(ABC):
    """Why a column is set aside."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """A few words."""


@dataclass(frozen=True)
class Empty(Aside):
    """A column without a value."""

    @property
    def reason(self) -> str:
        """A few words."""
        return "empty"


@dataclass(frozen=True)
class Constant(Aside):
    """A column with one value.

    dtype: NumPy's type of a time or a duration, whose value is an integer; None for others.
    """

    value: Any
    dtype: str | None = None

    @property
    def reason(self) -> str:
        """A few words."""
        shown = np.array(self.value).astype(self.dtype) if self.dtype else repr(self.value)
        return f"constant at {shown}"


@dataclass(frozen=True)
class Index(Aside):
    """A column that numbers the rows in order, or has the name of a saved index."""

    first: int

    @property
    def reason(self) -> str:
        """A few words."""
        return "a saved index"


@dataclass(frozen=True)
class Identifier(Aside):
    """A column whose values all differ, or nearly all.

    first: The least number, None for strings.
    """

    first: int | None
    distinct: int
    rows: int

    @property
    def reason(self) -> str:
        """A few words."""
        count = "all" if self.distinct == self.rows else f"{self.distinct} of"
        return f"an identifier: {count} {self.rows} values differ"


def find(known: NDArray[Any], name: str = "") -> Aside | None:
    """Returns why a column with these known values, in row order, is set aside; None if it is not.

    name: The column's; it matters only if it is that of a saved index.
    """
    if not len(known):
        return Empty()
    values = grids.integers(known)
    if bool((values == values[0]).all()):
        value = values[0].item() if isinstance(values[0], np.generic) else values[0]
        return Constant(value, str(known.dtype) if known.dtype.kind in "mM" else None)
    if known.dtype.kind in "OUS":
        return _string(values)
    return _number(values, bool(SAVED.fullmatch(name))) if known.dtype.kind in "iuf" else None


def _string(values: NDArray[Any]) -> Aside | None:
    _, counts = np.unique(values.astype(str), return_counts=True)
    alone = int((counts == 1).sum()) / len(values)
    return Identifier(None, len(counts), len(values)) if alone > NEARLY_ALL else None


def _number(values: NDArray[Any], saved: bool) -> Aside | None:
    """Returns whether whole numbers that all differ are made to differ.

    n numbers drawn from R by chance have about n (n − 1) / 2R pairs of equal ones, more if some are
    likelier than others.
    """
    if values.dtype.kind not in "iu" and not bool((values == np.rint(values)).all()):
        return None
    ordered = np.sort(values)
    if bool((ordered[1:] == ordered[:-1]).any()):
        return None
    first, last, n = int(ordered[0]), int(ordered[-1]), len(values)
    counted = n >= MANY and first in (0, 1) and last - first == n - 1
    if saved or (counted and bool((values == ordered).all())):
        return Index(first)
    numbers = (last - first) // step_of(ordered) + 1
    return Identifier(first, n, n) if n * (n - 1) / (2 * numbers) > EXPECTED else None


def step_of(ordered: NDArray[Any]) -> int:
    """Returns the step of the grid that whole numbers, ascending, lie on."""
    grid = grids.find(ordered)
    return max(1, round(grid.width)) if grid is not None else 1
