"""One pass over a table in pieces: a tally of each column, and some rows to look at closely.

Rows are kept that are evenly spread over the table, that are held out, or that have the least or
the greatest value of a column. A table of few rows is kept whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow
from numpy.typing import NDArray

from nits.tables import zones
from nits.tables.evidence import samples
from nits.tables.frames import Frame
from nits.tables.stream.source import Source
from nits.tables.stream.tallies import Tally, Words, begun
from nits.training.likelihood import STARTED_FROM
from nits.training.progress import Counter

Places = NDArray[np.int64]
Item = TypeVar("Item")


class Scanned(NamedTuple):
    """What one pass has seen.

    tallies: Of each column.
    kept: Rows of the table, in its order.
    places: Their positions in the table.
    even: Positions of kept rows that are evenly spread over the table.
    rows: How many rows the table has.
    """

    tallies: dict[str, Tally | Words]
    kept: Frame
    places: Places
    even: Places
    rows: int

    def frame(self, places: Places) -> Frame:
        """Returns kept rows by their positions in the table."""
        return self.kept.take(np.searchsorted(self.places, places))


def spread(rows: int, count: int) -> Places:
    """Returns positions evenly spread over a table, as the evidence takes them in memory."""
    if rows <= count:
        return np.arange(rows)
    return np.unique(np.linspace(0, rows - 1, count).astype(np.int64))


def scanned(source: Source, held_out: Places, *, progress: bool = False) -> Scanned:
    """Reads a table once.

    held_out: Positions of rows that are kept, too.
    """
    rows = len(source)
    even = spread(rows, STARTED_FROM)
    wanted = np.unique(np.concatenate([even, spread(rows, samples.ROWS), held_out]))
    seen = _Pass(wanted)
    with Counter("rows", quiet=not progress, total=rows) as counter:
        for table in ahead(_tables(source)):
            seen.add(table)
            counter.add(table.num_rows)
    return seen.ended(even, rows)


def _tables(source: Source) -> Iterator[pyarrow.Table]:
    for piece in range(len(source.sizes)):
        yield from source.read(piece)


class _Pass:
    """A pass as it goes."""

    def __init__(self, wanted: Places) -> None:
        self.wanted = wanted
        self.tallies: dict[str, Tally | Words] = {}
        self.parts: list[pyarrow.Table] = []
        self.places: list[Places] = []
        self.done = 0

    def add(self, table: pyarrow.Table) -> None:
        """Counts the values of some rows, and keeps those that are wanted."""
        frame, start, stop = zones.read(table), self.done, self.done + table.num_rows
        for name, values in frame.columns.items():
            self.tallies.setdefault(name, begun(name, values)).add(values, start)
        ends = [place for place in self._extremes() if start <= place < stop]
        low, high = np.searchsorted(self.wanted, [start, stop])
        here = np.union1d(self.wanted[low:high], np.array(ends, np.int64))
        if len(here):
            self.parts.append(table.take(pyarrow.array(here - start)))
            self.places.append(here)
        self.done = stop

    def _extremes(self) -> set[int]:
        """Returns the positions of the rows with the least and the greatest values so far."""
        numeric = [tally for tally in self.tallies.values() if isinstance(tally, Tally)]
        return {place for tally in numeric for _, place in (*tally.low, *tally.high)}

    def ended(self, even: Places, rows: int) -> Scanned:
        """Returns what was seen, without rows whose values are not extreme any more."""
        places = np.concatenate(self.places)
        ends = np.array(sorted(self._extremes()), np.int64)
        still = np.isin(places, self.wanted) | np.isin(places, ends)
        table = pyarrow.concat_tables(self.parts).take(pyarrow.array(np.flatnonzero(still)))
        self.parts.clear()
        return Scanned(self.tallies, zones.read(table), places[still], even, rows)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yields items while a thread makes the next one."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1, "nits-ahead") as thread:
        coming = thread.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield item  # type: ignore[misc]
