"""What a numeric column has recorded: distinct values, how often each, on which grid, how finely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables import grids, resolution
from nits.tables.grids import Grid
from nits.tables.resolution import Resolution

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_CELLS = 2**18
"""Cells of a grid whose masses float32 tells apart with room to spare; more are modelled by a density."""


TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Record:
    """The known values of a numeric column.

    values, counts: Distinct values, ascending, in the type in which they were stored (times as int64),
        and how often each occurs.
    base: What is taken off integers and times before they become floats, 0 if floats hold them all.
    time: Whether they are times.
    """

    values: NDArray[Any]
    counts: Counts
    base: int
    time: bool = False

    @classmethod
    def of(cls, known: NDArray[Any]) -> Record:
        """Returns the record of known, finite values."""
        whole = grids.integers(known)
        values, counts = np.unique(whole, return_counts=True)
        time = known.dtype.kind == "M"
        return cls(values, counts.astype(np.int64), _base(values, time), time)

    @cached_property
    def x(self) -> Numbers:
        """The distinct values less the base, as floats."""
        return self.numbers(self.values)

    def numbers(self, values: NDArray[Any]) -> Numbers:
        """Returns values of the column less the base as floats; no digit is lost before."""
        if self.base == 0:
            return values.astype(np.float64)
        # Modulo 2^64, as no value is less than the base.
        whole = grids.integers(values).astype(np.uint64)
        return (whole - np.uint64(self.base % 2**64)).astype(np.float64)

    @property
    def rows(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @cached_property
    def grid(self) -> Grid | None:
        """The even grid that holds all values."""
        return grids.find(self.values)

    @cached_property
    def resolution(self) -> Resolution:
        """How finely values are recorded."""
        real = self.values.dtype.kind == "f"
        precision = float(np.finfo(self.values.dtype).eps) if real else 0.0
        return resolution.find(self.x, self.grid.width if self.grid else 0.0, precision)

    @property
    def step(self) -> float:
        """The step of the grid if its cells are few enough, and wide enough, to have masses, else 0."""
        if (
            self.grid is None
            or self.grid.width < TINY
            or self.x[-1] / 2 - self.x[0] / 2 > self.grid.width * MOST_CELLS / 2
        ):
            return 0.0
        return self.grid.width

    def plain(self, places: NDArray[np.intp] | slice) -> tuple[float | int, ...]:
        """Returns distinct values as Python numbers."""
        return tuple(self.values[places].tolist())


def _base(values: NDArray[Any], time: bool) -> int:
    if values.dtype.kind == "f":
        return 0
    least, greatest = int(values[0]), int(values[-1])
    return least if time or max(-least, greatest) > 2**53 else 0
