"""What all values of a column come to, in memory that their number does not set.

Distinct values and how often each occurs are counted exactly as long as they are not too many. Of
more, numbers keep exact counts of the outermost ones at either end, from which limits and tails are
found, and the even grid that holds all of them; strings keep those whose hashes end in zeros, a
sample of the distinct ones with exact counts. Nothing is random: the same rows give the same tally.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns import plainly
from nits.tables.columns.column import Facts
from nits.tables.evidence import choice, grids
from nits.tables.evidence.grids import Grid
from nits.tables.frames import Values

MOST_VALUES = 2**17
"""Distinct values of a column that are counted."""

OUTER = choice.OUTER
"""Distinct values at either end that are counted where there are more than that."""

Counts = NDArray[np.int64]


@dataclass
class Tally:
    """A column of numbers or times.

    rows, holes, infinite: Values that are known, missing, and among the known ones infinite.
    values, counts: Distinct values, ascending, and how often each occurs; the outermost ones at
        either end if not `whole`.
    grid: If not `whole`, the even grid that holds all values.
    numbered: Whether each row's value is one more than that of the row before.
    first, begun: The first value, and the position of its row.
    low, high: The two rows with the least and the greatest values: their values and positions.
    """

    name: str
    like: Values
    rows: int = 0
    holes: int = 0
    infinite: int = 0
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    whole: bool = True
    grid: Grid | None = None
    numbered: bool = True
    first: Any = None
    begun: int = 0
    low: list[tuple[Any, int]] = field(default_factory=list)
    high: list[tuple[Any, int]] = field(default_factory=list)

    def add(self, values: Values, at: int) -> None:
        """Counts some rows, of which the first has the position `at` in the table."""
        refuse_other(self, values)
        if values.ordered:
            values = replace(values, array=plainly.numbers(values, self._facts(values), None)[0])
        here = ~values.missing
        self.holes += len(values) - int(here.sum())
        if values.array.dtype.kind == "f":
            self.infinite += int(np.isinf(values.array[here]).sum())
            here &= np.isfinite(values.array)
        places = np.flatnonzero(here)
        if not len(places):
            self.numbered = self.numbered and not len(values)
            return
        array = self.alike(values.array[places])
        self._order(array, len(values), at)
        self.rows += len(array)
        self.low = _first(self.low, array, places + at, np.less)
        self.high = _first(self.high, array, places + at, np.greater)
        if self.whole:
            self.count(*_counted(array))
        else:
            self._outermost(array)

    def _facts(self, values: Values) -> Facts:
        return Facts.of(self.name, values)

    @property
    def unit(self) -> np.dtype[Any]:
        """The type of the values in memory."""
        return self.like.array.dtype

    @property
    def stored(self) -> NDArray[Any]:
        """The counted values in the type that they have in memory."""
        return self.as_stored(self.values)

    def as_stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns values as they are counted in the type that they have in memory."""
        return values.astype(self.unit) if self.unit.kind in "mM" else values

    def alike(self, known: NDArray[Any]) -> NDArray[Any]:
        """Returns values in the type of those before, which change theirs if need be."""
        if self.rows == 0:
            self.like = replace(self.like, array=known[:0])
            self.values = grids.integers(known[:0])
        if known.dtype == self.unit:
            return grids.integers(known)
        if self.unit.kind in "mM":
            return self._in_one_unit(known)
        kinds = {self.unit.kind, known.dtype.kind}
        mixed = np.uint64 if kinds == {"i", "u"} else np.result_type(self.unit, known.dtype)
        self.values = self.values.astype(mixed)
        self.like = replace(self.like, array=self.like.array.astype(mixed))
        return known.astype(mixed)

    def _in_one_unit(self, known: NDArray[Any]) -> NDArray[Any]:
        """Returns times in the coarser of two units, which Arrow's own is no finer than."""
        old, new = (grids.PER_SECOND[str(grids.unit(each))] for each in (self.like.array, known))
        if new >= old:
            return grids.integers(known.astype(self.unit))
        self.values = self.values // (old // new)
        self.low, self.high = (
            [(value // (old // new), place) for value, place in ends]
            for ends in (self.low, self.high)
        )
        self.like = replace(self.like, array=known[:0])
        return grids.integers(known)

    def _order(self, array: NDArray[Any], rows: int, at: int) -> None:
        """Sees whether the rows are numbered one after another."""
        if self.first is None:
            self.first, self.begun = array[0], at
        whole = self.numbered and len(array) == rows and array.dtype.kind in "iuf"
        since = np.arange(at - self.begun, at - self.begun + rows)
        self.numbered = whole and bool((array == self.first + since).all())

    def count(self, values: NDArray[Any], counts: Counts) -> None:
        """Counts distinct values, as long as there are not too many."""
        self.values, self.counts = together(self.values, self.counts, values, counts)
        if len(self.values) > MOST_VALUES:
            self.whole = False
            precise = choice.stored(self.stored, self.like.dtype)
            self.grid = grids.find(precise)
            self.trim()

    def trim(self) -> None:
        """Keeps the outermost values only."""
        if len(self.values) > 2 * OUTER:
            keep = np.r_[:OUTER, len(self.values) - OUTER : len(self.values)]
            self.values, self.counts = self.values[keep], self.counts[keep]

    def _outermost(self, array: NDArray[Any]) -> None:
        """Counts values that are among the outermost ones, and sees that all lie on the grid."""
        low, high = self.values[OUTER - 1], self.values[-OUTER]
        if self.grid is not None:
            self._regrid(array)
        outer = _counted(array[(array <= low) | (array >= high)])
        self.values, self.counts = together(self.values, self.counts, *outer)
        self.trim()

    def _regrid(self, array: NDArray[Any]) -> None:
        """Makes the grid finer, or gives it up, where values are not on it."""
        precise = choice.stored(array, self.like.dtype)
        if self.grid is None or bool(self.grid.holds(precise).all()):
            return
        if self.grid.exact:
            before = self.grid.decode(np.arange(2))
        else:
            before = choice.stored(self.values, self.like.dtype)
        self.grid = grids.find(np.unique(np.concatenate([before.astype(precise.dtype), precise])))


def _counted(array: NDArray[Any]) -> tuple[NDArray[Any], Counts]:
    values, counts = np.unique(array, return_counts=True)
    return values, counts.astype(np.int64)


def together(
    values: NDArray[Any], counts: Counts, others: NDArray[Any], more: Counts
) -> tuple[NDArray[Any], Counts]:
    """Returns distinct values of both, and how often each occurs."""
    if not len(values):
        return others, more
    distinct, place = np.unique(np.concatenate([values, others]), return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place, np.concatenate([counts, more]))
    return distinct, sums


def _first(
    ends: list[tuple[Any, int]],
    array: NDArray[Any],
    places: NDArray[np.int64],
    beyond: np.ufunc,
) -> list[tuple[Any, int]]:
    """Returns the two outermost values, the first of equal ones first, and their positions.

    beyond: Whether a value lies farther out than another.
    """
    outer = np.minimum.reduce if beyond is np.less else np.maximum.reduce
    if len(ends) == 2 and not beyond(outer(array), ends[1][0]):
        return ends
    found = list(ends)
    for _ in range(2):
        if not len(array):
            break
        at = np.flatnonzero(array == outer(array))[:2]
        found += [(array[i], int(places[i])) for i in at]
        rest = array != array[at[0]]
        array, places = array[rest], places[rest]
    found.sort(key=lambda pair: pair[1])
    found.sort(key=lambda pair: pair[0], reverse=beyond is np.greater)
    return found[:2]


def refuse_other(tally: Tally | Words, values: Values) -> None:
    """Refuses ordered categories in another order than before."""
    if values.ordered and tally.like.levels != values.levels:
        raise ValueError(
            f"ordered categories must be declared alike in all files, but those of "
            f"{tally.name!r} are not; convert them to strings."
        )


@dataclass
class Words:
    """A column of strings or booleans.

    counts: How often each value occurs; of some of them, if not `whole`: those whose hash is
        divisible by 2^level.
    """

    name: str
    like: Values
    rows: int = 0
    holes: int = 0
    counts: dict[Any, int] = field(default_factory=dict)
    level: int = 0
    infinite: int = 0

    @property
    def whole(self) -> bool:
        """Whether all values are counted."""
        return self.level == 0

    def add(self, values: Values, at: int) -> None:
        """Counts some rows."""
        refuse_other(self, values)
        known = values.known
        self.holes += len(values) - len(known)
        self.rows += len(known)
        for value, count in _tallied(known):
            if self.level == 0 or hashed(value) % 2**self.level == 0:
                self.counts[value] = self.counts.get(value, 0) + count
        while len(self.counts) > MOST_VALUES:
            self.level += 1
            step = 2**self.level
            self.counts = {v: n for v, n in self.counts.items() if hashed(v) % step == 0}

    @property
    def distinct(self) -> int:
        """How many different values there are; about so many if not `whole`."""
        return len(self.counts) << self.level

    @property
    def alone(self) -> float:
        """The share of rows whose value no other row has."""
        single = sum(count == 1 for count in self.counts.values()) << self.level
        return single / max(self.rows, 1)


def _tallied(known: NDArray[Any]) -> list[tuple[Any, int]]:
    """Returns the distinct values of strings or booleans, and how often each occurs."""
    import pyarrow

    if not len(known):
        return []
    found = pyarrow.array(known).value_counts()
    return list(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True))


def hashed(value: Any) -> int:
    """Returns a number that is the same in every process."""
    from zlib import crc32

    return crc32(str(value).encode("utf-8", "surrogatepass"))


def begun(name: str, values: Values) -> Tally | Words:
    """Returns the tally of a column like these values, of no rows yet."""
    kind = Words if values.array.dtype.kind in "OUb" and not values.ordered else Tally
    return kind(name, values.take(slice(0)))
