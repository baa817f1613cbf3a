"""What a numeric column has recorded: distinct values, counts, grid, resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import grids, resolution
from nits.tables.evidence.grids import Grid
from nits.tables.evidence.resolution import Resolution

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_CELLS = 2**18
"""Cells of a grid whose masses float32 tells apart with room to spare; else it is a density."""

MOST_SEEN = 4096
"""Values of a grid of no decimals that are kept to the last digit; of more, none is frequent."""

TINY, LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Record:
    """The known values of a numeric column; those that only rounding sets apart are one.

    values, counts: Distinct values, ascending, in the type in which they were stored (times and
        durations as int64), and how often each occurs.
    base: What is taken off integers and times before they become floats, 0 if floats hold them all.
    grid: The even grid that holds all values.
    time: Whether they are times.
    unit: The unit of times and durations, None for numbers.
    """

    values: NDArray[Any]
    counts: Counts
    base: int
    grid: Grid | None
    time: bool = False
    unit: str | None = None

    @classmethod
    def of(cls, known: NDArray[Any]) -> Record:
        """Returns the record of known, finite values."""
        values, counts = np.unique(grids.integers(known), return_counts=True)
        return cls.counted(values, counts, known, grids.find(values))

    @classmethod
    def counted(
        cls, values: NDArray[Any], counts: Counts, like: NDArray[Any], grid: Grid | None
    ) -> Record:
        """Returns the record of distinct values, ascending, that occur so often.

        like: An array of the type that the values had, of times or numbers.
        """
        time = like.dtype.kind == "M"
        if grid is not None and not grid.exact:
            values, counts = _merged(values, counts, grid)
        base, unit = _base(values, time), grids.unit(like)
        return cls(values, counts.astype(np.int64, copy=False), base, grid, time, unit)

    @cached_property
    def x(self) -> Numbers:
        """The distinct values less the base, as floats."""
        return self.numbers(self.values)

    def numbers(self, values: NDArray[Any]) -> Numbers:
        """Returns values of the column less the base as floats; no digit is lost before."""
        if self.base == 0:
            return values.astype(np.float64, copy=False)
        # Modulo 2^64, as no value is less than the base.
        whole = grids.integers(values).astype(np.uint64)
        return (whole - np.uint64(self.base % 2**64)).astype(np.float64)

    @property
    def rows(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @cached_property
    def resolution(self) -> Resolution:
        """How finely values are recorded."""
        real = self.values.dtype.kind == "f"
        precision = float(np.finfo(self.values.dtype).eps) if real else 0.0
        return resolution.find(self.x, self.grid.width if self.grid else 0.0, precision)

    @property
    def step(self) -> float:
        """The step of the grid if its cells are few and wide enough to have masses, else 0."""
        width = self.grid.width if self.grid is not None else 0.0
        ends = self.x[[0, -1]] / 2
        few = width >= TINY and ends[1] - ends[0] <= width * MOST_CELLS / 2
        return width if few and float(np.abs(ends).max()) + width < LARGEST / 2 else 0.0

    @property
    def own_grid(self) -> Grid | None:
        """The grid with the column's own numbers on it, to the last digit."""
        if self.grid is None or isinstance(self.grid.step, int) or len(self.values) > MOST_SEEN:
            return self.grid
        return replace(self.grid, seen=tuple(self.x.tolist()))

    def plain(self, places: NDArray[np.intp] | slice) -> tuple[float | int, ...]:
        """Returns distinct values as Python numbers."""
        return tuple(self.values[places].tolist())


def _base(values: NDArray[Any], time: bool) -> int:
    if values.dtype.kind == "f":
        return 0
    least, greatest = int(values[0]), int(values[-1])
    return least if time or max(-least, greatest) > 2**53 else 0


def _merged(values: NDArray[Any], counts: Counts, grid: Grid) -> tuple[NDArray[Any], Counts]:
    """Returns the most frequent value at each place of the grid, and the sums of counts."""
    k, _ = grid.encode(values)
    places, start = np.unique(k, return_index=True)
    if len(places) == len(k):
        return values, counts
    order = np.lexsort((-counts, k))
    return values[order[start]], np.add.reduceat(counts, start)
