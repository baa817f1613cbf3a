"""One pass over a table in pieces: a tally of each column, and some rows to look at closely.

Rows are kept that are evenly spread over the table, that are held out, or that have the least or
the greatest value of a column. A table of few rows is kept whole. Tasks of an engine, or the ranks
of a training run, read parts of the table at once; what they have seen is that of one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow
from numpy.typing import NDArray

from nits.engines.engine import Engine
from nits.tables import zones
from nits.tables.evidence import samples
from nits.tables.frames import Frame, Values
from nits.tables.stream.merging import merge
from nits.tables.stream.source import Source
from nits.tables.stream.tallies import Tally, Words, begun
from nits.training import ranks
from nits.training.likelihood import STARTED_FROM
from nits.training.progress import Counter, Reporter

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

    def one(self, name: str) -> One:
        """Returns what was seen of a column; of strings all that counts is in the tally."""
        tally, values = self.tallies[name], self.kept.columns[name]
        kept = values.take(slice(0)) if isinstance(tally, Words) else values
        return One(tally, kept, self.places, self.even, self.rows)


class One(NamedTuple):
    """What one pass has seen of a column; see `Scanned`."""

    tally: Tally | Words
    kept: Values
    places: Places
    even: Places
    rows: int

    def at(self, places: Places) -> Values:
        """Returns values of kept rows by their positions in the table."""
        return self.kept.take(np.searchsorted(self.places, places))


def spread(rows: int, count: int) -> Places:
    """Returns positions evenly spread over a table, as the evidence takes them in memory."""
    if rows <= count:
        return np.arange(rows)
    return np.unique(np.linspace(0, rows - 1, count).astype(np.int64))


def scanned(
    source: Source, held_out: Places, *, engine: Engine | None = None, progress: bool = False
) -> Scanned:
    """Reads a table once.

    held_out: Positions of rows that are kept, too.
    engine: Where parts of it are read at once; by default all is read here, or by all ranks.
    """
    rows = len(source)
    even = spread(rows, STARTED_FROM)
    wanted = np.unique(np.concatenate([even, spread(rows, samples.ROWS), held_out]))
    group = ranks.current()
    if not group.alone:
        mine = cut(source, group.size)[group.rank]
        passes = group.gathered(_passed(Part(source, wanted, mine), progress=False))
    elif engine is not None and (count := engine.parallel()) > 1:
        passes = _tasks(engine, [Part(source, wanted, some) for some in cut(source, count)])
    else:
        passes = [_passed(Part(source, wanted, range(len(source.sizes))), progress=progress)]
    seen = passes[0]
    for later in passes[1:]:
        seen.merge(later)
    return seen.ended(even, rows)


class Part(NamedTuple):
    """Pieces of a table next to each other, and the positions of rows that are to be kept."""

    source: Source
    wanted: Places
    pieces: range


def cut(source: Source, count: int) -> list[range]:
    """Returns the pieces of so many parts of a table, of about as many rows each, in order."""
    ends = np.cumsum(source.sizes)
    shares = np.arange(1, count) * len(source) / count
    at = [0, *np.searchsorted(ends, shares).tolist(), len(ends)]
    return [range(start, stop) for start, stop in pairwise(at)]


def passed(part: Part, reporter: Reporter) -> _Pass:
    """Reads a part of a table, as a task of an engine."""
    return _passed(part, progress=False)


def _passed(part: Part, *, progress: bool) -> _Pass:
    source, pieces = part.source, part.pieces
    seen = _Pass(part.wanted, sum(source.sizes[: pieces.start]))
    tables = (table for piece in pieces for table in source.read(piece))
    with Counter("rows", quiet=not progress, total=len(source)) as counter:
        for table in ahead(tables):
            seen.add(table)
            counter.add(table.num_rows)
    return seen


def _tasks(engine: Engine, parts: list[Part]) -> list[_Pass]:
    found = [one for one in engine.run(passed, parts, label="reading") if one is not None]
    if len(found) < len(parts):
        raise KeyboardInterrupt
    return found


class _Pass:
    """A pass as it goes.

    wanted: Positions of rows that are kept.
    done: The position of the next row.
    """

    def __init__(self, wanted: Places, done: int) -> None:
        self.wanted = wanted
        self.tallies: dict[str, Tally | Words] = {}
        self.parts: list[pyarrow.Table] = []
        self.places: list[Places] = []
        self.done = done

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

    def merge(self, later: _Pass) -> None:
        """Adds what a pass over the next rows has seen."""
        for name, tally in later.tallies.items():
            if name in self.tallies:
                merge(self.tallies[name], tally)
            else:
                self.tallies[name] = tally
        self.parts += later.parts
        self.places += later.places
        self.done = later.done

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
