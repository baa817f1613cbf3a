"""An axis with room of its own for frequent values, which a scale may have no place for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.report import axes, words
from nits.report.axes import NOWHERE, Amounts, Axis, Bars
from nits.report.ticks import Tick
from nits.tables.columns import Column
from nits.tables.frames import Values

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

ROOM = 0.08
"""The part of an axis that a frequent value takes, and that lies between it and the others."""

MOST = 3


@dataclass(frozen=True)
class Split:
    """Bins of frequent values, an empty one, and then those of a scale."""

    inner: Amounts
    values: NDArray[Any]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.inner) + len(self.values) + 1

    @property
    def _start(self) -> float:
        """Where the scale begins."""
        return ROOM * (len(self.values) + 0.5)

    @property
    def edges(self) -> Numbers:
        """The places from 0 to 1 between which bins lie."""
        own = ROOM * np.arange(len(self.values) + 1)
        return np.concatenate([own, self._start + (1 - self._start) * self.inner.edges])

    @property
    def ticks(self) -> list[Tick]:
        """The frequent values, and round ones."""
        own = [Tick((i + 0.5) * ROOM, label) for i, label in enumerate(self.labels)]
        first = own[-1].place + ROOM
        moved = [Tick(self._start + (1 - self._start) * t.place, t.label) for t in self.inner.ticks]
        return own + [tick for tick in moved if tick.place > first]

    def bins(self, values: Values) -> Places:
        """Returns the bin of each value; `NOWHERE` for missing ones and those beyond the ends."""
        inner = self.inner.bins(values)
        found = np.where(inner == NOWHERE, NOWHERE, inner + len(self.values) + 1)
        x = axes.plain(self.inner.column, values)
        for i, value in enumerate(self.values):
            found[(x == value) & ~values.missing] = i
        return found


def axis(column: Column, values: Values, bins: int, bars: int) -> Axis | Split:
    """Returns the axis of a column for pictures of pairs, on which every value has a place."""
    found = axes.axis(column, values, bins, bars)
    if isinstance(found, Bars):
        return found
    off = axes.apart(column, values)
    at = axes.placed(column, found.scale, off, found.reach)
    lost = off[~((at >= 0) & (at <= 1))][:MOST]
    if not len(lost):
        return found
    return Split(found, lost, tuple(axes.named(column, value) for value in lost))


def short(axis: Axis | Split, most: int) -> list[Tick]:
    """Returns an axis's ticks with labels of at most so many letters."""
    return [Tick(tick.place, words.short(tick.label, most)) for tick in axis.ticks]
