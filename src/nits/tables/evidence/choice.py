"""What a column is, decided by the likelihood of values held out from it.

Candidates for a numeric column compete in five folds, all on the same base measure: categories,
observed values in order, an even grid, real numbers; the last two on the scale, and with the
atoms, that suit them best. Ties, within one standard error or 0.01 nats per row, go to the
candidate with the fewest numbers that a network must give for a row: one less than the levels for
categories, 95 for a smooth model, one more for each atom, 16 more for ordered values, which
cannot give what was never seen. Strings and booleans are categories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import candidates, grids, limits, tails, words
from nits.tables.evidence.cases import MOST_LEVELS, Case
from nits.tables.evidence.contest import Candidate
from nits.tables.evidence.decisions import Decision, Gridded, Kind, Levels, Ordered, Real
from nits.tables.evidence.limits import Limit, Limits
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.evidence.views import Cells, Points

KINDS = ("continuous", "integer", "ordered", "categorical")
"""What the user may say a column is."""

LISTED = KINDS[2:]
"""Those that list every value."""

CALENDAR = (-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999 in seconds since 1970."""

OUTER = 2 * tails.LOOKED_AT
"""Distinct values at either end that no other stands for where there are very many."""


class Seen(NamedTuple):
    """What has been seen of a column's values that are not missing.

    stored: All of them, or of a table beyond memory some distinct ones, the extremes among them, in
        the precision in which the table has them.
    dtype: The name of the type that the column has in its table, if the array has another.
    counts: How often each category occurs; None to count what is stored.
    record, sample: As of all values; None to make them of what is stored.
    whole: Whether the record lists every distinct value.
    """

    stored: NDArray[Any]
    dtype: str | None
    counts: Mapping[Any, int] | None = None
    record: Record | None = None
    sample: Sample | None = None
    whole: bool = True

    @classmethod
    def of(cls, known: NDArray[Any], dtype: str | None) -> Seen:
        """Returns what all known values show."""
        return cls(stored(known, dtype), dtype)


def decide(
    known: NDArray[Any],
    dtype: str | None = None,
    *,
    kind: str | None = None,
    support: tuple[Limit, Limit] | None = None,
    atoms: bool = True,
    levels: int | None = None,
) -> Decision:
    """Returns how a column is best modelled.

    known: Its values that are not missing, two different ones at least: finite floats, integers,
        booleans, times, durations or strings.
    dtype: The name of the type that it has in its table, if the array has another.
    kind: "continuous", "integer", "ordered" or "categorical", if the user says so.
    support: Limits that the user gives; nothing beyond them is possible.
    atoms: Whether values may have probabilities of their own beside a density or a grid.
    levels: How many declared categories the values are positions of, if they are.
    """
    seen = Seen.of(known, dtype)
    return judged(seen, kind=kind, support=support, atoms=atoms, levels=levels)


def judged(
    seen: Seen,
    *,
    kind: str | None = None,
    support: tuple[Limit, Limit] | None = None,
    atoms: bool = True,
    levels: int | None = None,
) -> Decision:
    """Returns how a column is best modelled of which so much was seen; see `decide`."""
    if seen.stored.dtype.kind in "OUSb":
        return _categories(seen.counts or Counter(seen.stored.tolist()), kind)
    record = seen.record or Record.of(seen.stored)
    if len(record.values) < 2:
        raise ValueError(
            f"a column must have two different values at least, but all are {record.values[0]}; "
            "set it aside."
        )
    if not seen.whole and kind in LISTED:
        raise ValueError(
            f"values that are named {kind} must be few enough to be listed in memory, but are "
            "more; leave the kind out."
        )
    if kind == "categorical":
        counted = seen.counts or Counter(grids.integers(seen.stored).tolist())
        return replace(_categories(counted, kind), unit=record.unit)
    case = Case(record, seen.sample or Sample.of(record.numbers(seen.stored)), atoms, seen.whole)
    ends = _ends(seen.stored, seen.dtype) if levels is None else (0, levels - 1)
    within = _given(record, support, ends) if support else limits.find(record, ends)
    entries = _entries(case, kind)
    if not seen.whole:
        entries = [entry for entry in entries if entry.name not in ("levels", "ordered")]
    return _decision(case, entries, within, kind)


def _categories(counts: Mapping[Any, int], kind: str | None) -> Decision:
    """Returns levels, of which all but the most frequent ones are pooled if there are too many."""
    if kind not in (None, "categorical", "ordered"):
        raise ValueError(
            f"strings and booleans must be categorical, not {kind}; leave the kind out."
        )
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    kept = ranked if len(ranked) <= MOST_LEVELS else ranked[: MOST_LEVELS - 1]
    rare = sorted(ranked[len(kept) :])
    total = sum(counts[level] for level in rare)
    levels = Levels(tuple(sorted(kept)), tuple(rare), tuple(counts[one] / total for one in rare))
    return Decision(levels, sum(counts.values()), words.categories(levels, kind))


def _entries(case: Case, kind: str | None) -> list[Candidate]:
    """Returns the candidates, or those of the kind that the user wants."""
    if kind is None:
        return case.entries()
    if kind not in KINDS:
        raise ValueError(f"the kind must be one of {', '.join(KINDS)}, but is {kind!r}.")
    if kind == "integer" and case.record.grid is None:
        raise ValueError(
            "the values must be multiples of one step to be integer, but are not; "
            "leave the kind out."
        )
    even = case.even and kind != "continuous"
    fit = case.fit(even)
    smooth = case.smooth(fit, "grid" if even else "real")
    return case.lists(fit, smooth[0].scores)[:1] if kind == "ordered" else smooth


def _decision(case: Case, entries: list[Candidate], within: Limits, kind: str | None) -> Decision:
    best = case.contest.winner(entries)
    fit, detail = best.made if best.name in ("ordered", "levels") else (best.made, 0.0)
    record = case.record
    places = np.searchsorted(record.x, case.sample.x[fit.atoms])
    some = _thinned(len(record.x), places)
    x, counts = record.x[some], np.add.reduceat(record.counts, some)
    view = (
        Cells.on(fit.scale, x, record.step)
        if isinstance(fit.view, Cells)
        else Points.on(fit.scale, x, record.resolution.at(x))
    )
    kept = ~np.isin(some, places)
    kept |= np.count_nonzero(kept) < 2
    model = view.fit(counts, kept)
    lower, upper = limits.beyond(model, record, fit.scale, within)
    return Decision(
        _kind(best.name, record, places, detail),
        record.rows,
        words.reason(best, entries, case, within, kind),
        base=record.base,
        scale=fit.scale,
        ends=(model.low, model.high),
        lower=lower,
        upper=upper,
        low=within.low,
        high=within.high,
        hard=within.hard,
        resolution=record.resolution,
        unit=record.unit,
        scores={one.name: case.contest.mean(one.scores) for one in entries},
    )


def _thinned(count: int, atoms: NDArray[np.intp]) -> NDArray[np.intp]:
    """Returns the places of distinct values that ends and tails are fitted to.

    All values, unless they are many more than the tails look at: then those near the ends, the
    atoms, and between them some that stand for their neighbours, too.
    """
    if count <= 4 * OUTER:
        return np.arange(count)
    between = np.linspace(OUTER, count - OUTER, OUTER).astype(np.intp)
    ends = np.arange(OUTER), np.arange(count - OUTER, count)
    return np.unique(np.concatenate([*ends, between, atoms]))


def _kind(name: str, record: Record, atoms: NDArray[np.intp], strength: float) -> Kind:
    if name == "levels":
        return Levels(record.plain(slice(None)))
    if name == "ordered":
        size = len(record.values)
        masses = candidates.rank_masses(record.counts, np.arange(size))
        shares = candidates.blended(record.counts, masses, strength, size, record.rows)
        return Ordered(
            record.plain(slice(None)), tuple((np.exp(shares) / np.exp(shares).sum()).tolist())
        )
    if name.startswith("grid") and (grid := record.own_grid) is not None:
        return Gridded(grid, tuple(grid.encode(record.values[atoms])[0].tolist()))
    return Real(record.plain(atoms), record.own_grid)


def _given(record: Record, support: tuple[Limit, Limit], ends: tuple[Limit, Limit]) -> Limits:
    """Returns the limits that the user gives; where they are none, those of the type."""
    low, high = support
    least, greatest = record.values[0].item(), record.values[-1].item()
    if least < low or greatest > high:
        raise ValueError(
            f"the values must lie in the support [{low:g}, {high:g}], but go from {least:g} to "
            f"{greatest:g}; widen it, or drop those rows."
        )
    return Limits(max(low, ends[0]), min(high, ends[1]), hard=True)


def stored(known: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Returns floats in the precision in which the table has them."""
    name = _plain(dtype)
    if known.dtype == np.float64 and name in ("float32", "float", "float16", "halffloat"):
        return known.astype(np.float16 if name in ("float16", "halffloat") else np.float32)
    return known


def _plain(dtype: str | None) -> str:
    """Returns a type's name without what tells that it is nullable, or one of Arrow in pandas."""
    return (dtype or "").lower().removesuffix("[pyarrow]")


def _ends(stored: NDArray[Any], dtype: str | None) -> tuple[Limit, Limit]:
    """Returns the least and the greatest value of the type."""
    if stored.dtype.kind == "M":
        return _calendar(stored)
    if stored.dtype.kind == "m":
        return -(2**63) + 1, 2**63 - 1
    if stored.dtype == np.float64:
        return _digits(dtype)
    if stored.dtype.kind == "f":
        return float(np.finfo(stored.dtype).min), float(np.finfo(stored.dtype).max)
    name = _plain(dtype)
    ends = np.iinfo(name if re.fullmatch(r"u?int\d+", name) else stored.dtype)
    return int(ends.min), int(ends.max)


def _digits(dtype: str | None) -> tuple[Limit, Limit]:
    """Returns the ends of decimals with so many digits, which a file's type may have."""
    found = re.search(r"decimal\d*\((\d+), (-?\d+)\)", dtype or "")
    if found is None:
        return -np.inf, np.inf
    precision, scale = int(found[1]), int(found[2])
    most = float(Decimal(10**precision - 1).scaleb(-scale))
    return -most, most


def _calendar(stored: NDArray[Any]) -> tuple[Limit, Limit]:
    """Returns the ends of the years 1 to 9999, which files can hold, or those of 64 bits.

    Nanoseconds do not reach so far, and the values may go beyond.
    """
    ticks = grids.PER_SECOND.get(grids.unit(stored) or "", 2**63)
    first, last = CALENDAR[0] * ticks, CALENDAR[1] * ticks - 1
    whole = grids.integers(stored)
    low = first if first > -(2**63) and first <= int(whole.min()) else -(2**63) + 1
    return low, last if last < 2**63 and last >= int(whole.max()) else 2**63 - 1
