"""What the columns of a table beyond memory are, decided from tallies and kept rows.

The decisions are those of a table in memory: the evidence is the same rows, and the ends, limits,
tails, grids and categories come from exact counts. Columns with holes in tables of more than
200,000 rows are judged by the kept rows that have a value, not by the very rows of memory.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nits import checks
from nits.engines.engine import Engine
from nits.tables.columns import Column, build, plainly
from nits.tables.columns.column import Facts
from nits.tables.deciding import decided
from nits.tables.evidence import aside, choice, grids, samples
from nits.tables.evidence.aside import Aside, Constant, Empty, Identifier, Index
from nits.tables.evidence.choice import Seen
from nits.tables.evidence.grids import Grid
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.idle import Idle
from nits.tables.schema import Kinds, Schema, Supports, among, by_name, wanted_kinds
from nits.tables.stream import scan
from nits.tables.stream.scan import One, Scanned
from nits.tables.stream.tallies import MOST_VALUES, Tally, Words


def infer(
    scanned: Scanned,
    kinds: Kinds = None,
    support: Supports = None,
    pool_below: int = 0,
    given: list[str] | None = None,
    engine: Engine | None = None,
) -> tuple[Schema, Idle]:
    """Returns what each column is, and the columns that hold nothing to model.

    See `nits.tables.schema.infer`, which does the same for a table in memory.
    """
    frame, tallies = scanned.kept, scanned.tallies
    wanted, limits = wanted_kinds(kinds, frame), by_name(support, list(frame.columns))
    for ends in limits.values():
        checks.ends(*ends)
    _refuse_infinite(scanned)
    idle = _idle(scanned, [*wanted, *limits] if not isinstance(kinds, str) else [*limits])
    amounts = [n for n in given or () if frame.columns[n].array.dtype.kind in "iuf"]
    wanted = {**dict.fromkeys(amounts, "continuous"), **wanted}
    tasks = [
        Wanted(scanned.one(name), wanted.get(name), limits.get(name), pool_below)
        for name in tallies
        if name not in idle.columns
    ]
    columns = decided(column, tasks, engine)
    return Schema([among(column, len(columns)) for column in columns], frame.form), idle


class Wanted(NamedTuple):
    """A column to decide, and what the user says of it; see `nits.tables.columns.build.column`."""

    one: One
    kind: str | None
    support: tuple[float, float] | None
    pool_below: int


def _refuse_infinite(scanned: Scanned) -> None:
    found = [
        f"column {name!r} has {tally.infinite} infinite values"
        for name, tally in scanned.tallies.items()
        if tally.infinite
    ]
    if found:
        raise ValueError(f"{', '.join(found)}; drop those rows, or make them missing.")


def _facts(tally: Tally | Words, reason: str = "") -> Facts:
    like = tally.like
    return Facts(
        tally.name,
        like.dtype,
        tally.rows,
        tally.holes,
        reason=reason,
        levels=like.levels,
        ordered=like.ordered,
    )


def _idle(scanned: Scanned, wanted: list[str]) -> Idle:
    """Finds the columns to set aside; those that the user said something about stay."""
    found = {}
    for name, tally in scanned.tallies.items():
        why = _why_words(tally) if isinstance(tally, Words) else _why(scanned.one(name), tally)
        said = name in wanted and isinstance(why, Index | Identifier)
        holed = isinstance(why, Constant) and tally.holes
        if why is not None and not said and not holed:
            found[name] = (_facts(tally, why.reason), plainly.unit_of(tally.like.array), why)
    return Idle(found)


def _why_words(words: Words) -> Aside | None:
    if not words.rows:
        return Empty()
    if words.whole and len(words.counts) == 1:
        return Constant(next(iter(words.counts)))
    if words.like.array.dtype.kind == "b" or words.alone <= aside.NEARLY_ALL:
        return None
    return Identifier(None, min(words.distinct, words.rows), words.rows)


def _why(one: One, tally: Tally) -> Aside | None:
    """Returns whether whole numbers that all differ are made to differ, as `aside.find` does.

    Where values were too many to be counted, equal ones are sought among the kept rows: as many
    of these as rows would have such pairs by chance.
    """
    if not tally.rows:
        return Empty()
    times = tally.like.array.dtype.kind in "mM"
    if len(tally.values) == 1:
        return Constant(tally.values[0].item(), str(tally.unit) if times else None)
    if times or tally.like.ordered:
        return None
    known = _kept(one, tally)
    distinct, whole = (tally.values, tally.counts) if tally.whole else _counted(known)
    if (whole > 1).any() or not _integral(tally, distinct):
        return None
    first, last, n = int(tally.values[0]), int(tally.values[-1]), tally.rows
    counted = n >= aside.MANY and first in (0, 1) and last - first == n - 1
    if re.fullmatch(aside.SAVED, tally.name) or (counted and tally.numbered):
        return Index(first)
    numbers = (last - first) // aside.step_of(distinct) + 1
    pairs = len(distinct) * (len(distinct) - 1) / (2 * numbers)
    return Identifier(first, n, n) if pairs > aside.EXPECTED else None


def _integral(tally: Tally, distinct: NDArray[Any]) -> bool:
    if tally.unit.kind in "iu":
        return True
    grid = tally.grid
    fine = grid is not None and float(grid.width).is_integer() and float(grid.start).is_integer()
    return bool((distinct == np.rint(distinct)).all()) and (tally.whole or fine)


def _counted(known: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    values, counts = np.unique(known, return_counts=True)
    return values, counts


def _kept(one: One, tally: Tally) -> NDArray[Any]:
    """Returns the values of kept rows that are spread evenly, as integers or floats."""
    values = one.at(np.union1d(one.even, scan.spread(one.rows, samples.ROWS)))
    if values.ordered:
        return plainly.numbers(values, _facts(tally), None)[0][~values.missing]
    return grids.integers(values.known.astype(tally.unit))


def column(wanted: Wanted) -> Column:
    """Returns what a column is."""
    one, said = wanted.one, (wanted.kind, wanted.support, wanted.pool_below)
    tally, facts = one.tally, _facts(one.tally)
    if isinstance(tally, Words):
        if not tally.whole:
            raise ValueError(
                f"a column of strings must have at most {MOST_VALUES} different ones in a table "
                f"beyond memory, but {tally.name!r} has about {tally.distinct}; leave it out, or "
                "make rare ones one."
            )
        bools = tally.like.array.dtype.kind == "b"
        known = np.array(list(tally.counts), bool if bools else object)
        return build.built(facts, known, Seen(known, tally.like.dtype, tally.counts), *said)
    record = _record(one, tally)
    sample = _sample(one, tally, record)
    known = record.values.astype(tally.unit) if tally.unit.kind in "mM" else record.values
    counts = dict(zip(record.values.tolist(), record.counts.tolist(), strict=True))
    stored = choice.stored(known, tally.like.dtype)
    seen = Seen(stored, tally.like.dtype, counts, record, sample, tally.whole)
    return build.built(facts, known, seen, *said)


def _record(one: One, tally: Tally) -> Record:
    """Returns the record of all values; of too many, of the outermost and of kept ones."""
    like = choice.stored(tally.like.array, tally.like.dtype)
    values, counts = tally.values, tally.counts
    if not tally.whole:
        values, counts = _filled(tally, _kept(one, tally))
    values = values.astype(like.dtype) if like.dtype.kind == "f" else values
    grid = grids.find(values) if tally.whole else _grid(tally)
    return Record.counted(values, counts, like, grid)


def _filled(tally: Tally, kept: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Returns the outermost values with their counts, and between them kept ones for all others."""
    low, high = tally.values[choice.OUTER - 1], tally.values[-choice.OUTER]
    between, counts = _counted(kept[(kept > low) & (kept < high)])
    left = tally.rows - int(tally.counts.sum())
    # Shares of what is left, rounded so that they sum to it.
    ends = np.rint(np.cumsum(counts) / max(counts.sum(), 1) * left).astype(np.int64)
    shares = np.diff(ends, prepend=0)
    half = choice.OUTER
    values = np.concatenate([tally.values[:half], between, tally.values[half:]])
    return values, np.concatenate([tally.counts[:half], shares, tally.counts[half:]])


def _grid(tally: Tally) -> Grid | None:
    """Returns the grid of all values, from the least of them."""
    if tally.grid is None:
        return None
    ends = choice.stored(tally.values[[0, -1]], tally.like.dtype)
    k = int(tally.grid.encode(ends[:1])[0][0])
    largest = float(max(abs(ends[0].item()), abs(ends[1].item())))
    return replace(tally.grid, origin=tally.grid.origin + k * tally.grid.step, largest=largest)


def _sample(one: One, tally: Tally, record: Record) -> Sample:
    """Returns the rows that the evidence is taken from: those of memory, if there are no holes."""
    if tally.holes or one.rows <= samples.ROWS:
        kept = choice.stored(_kept(one, tally), tally.like.dtype)
        return Sample.of(record.numbers(kept))
    ends = [tally.low[0][1], tally.high[0][1]]
    values = one.at(np.union1d(scan.spread(one.rows, samples.ROWS), ends))
    if values.ordered:
        known = plainly.numbers(values, _facts(tally), None)[0]
    else:
        known = grids.integers(values.array.astype(tally.unit))
    return Sample.counted(record.numbers(choice.stored(known, tally.like.dtype)))
