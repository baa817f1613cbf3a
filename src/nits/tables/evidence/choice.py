"""What a column is, decided by the likelihood of values held out from it.

Candidates for a numeric column compete in five folds, all on the same base measure: categories,
observed values in order, an even grid, real numbers; the last two on the scale, and with the
atoms, that suit them best. Ties, within one standard error or 0.01 nats per row, go to the
candidate with the fewest numbers that a network must give for a row: one less than the levels for
categories, 95 for a smooth model, one more for each atom, 16 more for ordered values, which
cannot give what was never seen. Strings and booleans are categories.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import candidates, grids, limits, words
from nits.tables.evidence.cases import MOST_LEVELS, Case
from nits.tables.evidence.contest import Candidate
from nits.tables.evidence.decisions import Decision, Gridded, Kind, Levels, Ordered, Real
from nits.tables.evidence.limits import Limit, Limits
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.evidence.views import Cells, Points

KINDS = ("continuous", "integer", "ordered", "categorical")
"""What the user may say a column is."""


def decide(
    known: NDArray[Any],
    dtype: str | None = None,
    *,
    kind: str | None = None,
    support: tuple[Limit, Limit] | None = None,
    atoms: bool = True,
) -> Decision:
    """Returns how a column is best modelled.

    known: Its values that are not missing, two different ones at least: finite floats, integers,
        booleans, times or strings.
    dtype: The name of the type that it has in its table, if the array has another.
    kind: "continuous", "integer", "ordered" or "categorical", if the user says so.
    support: Limits that the user gives; nothing beyond them is possible.
    atoms: Whether values may have probabilities of their own beside a density or a grid.
    """
    if known.dtype.kind in "OUSb":
        return _categories(known, kind)
    stored = _stored(known, dtype)
    record = Record.of(stored)
    if len(record.values) < 2:
        raise ValueError(
            f"a column must have two different values at least, but all are {record.values[0]}; "
            "set it aside."
        )
    if kind == "categorical":
        return _categories(grids.integers(stored), kind)
    case = Case(record, Sample.of(record.numbers(stored)), atoms)
    within = _given(record, support) if support else limits.find(record, _ends(stored, dtype))
    return _decision(case, _entries(case, kind), within, kind)


def _categories(known: NDArray[Any], kind: str | None) -> Decision:
    """Returns levels, of which all but the most frequent ones are pooled if there are too many."""
    if kind not in (None, "categorical", "ordered"):
        raise ValueError(
            f"strings and booleans must be categorical, not {kind}; leave the kind out."
        )
    counts = Counter(known.tolist())
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    kept = ranked if len(ranked) <= MOST_LEVELS else ranked[: MOST_LEVELS - 1]
    rare = sorted(ranked[len(kept) :])
    total = sum(counts[level] for level in rare)
    levels = Levels(tuple(sorted(kept)), tuple(rare), tuple(counts[one] / total for one in rare))
    return Decision(levels, len(known), words.categories(levels, kind))


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
    even = isinstance(fit.view, Cells)
    view = (
        Cells.on(fit.scale, record.x, record.step)
        if even
        else Points.on(fit.scale, record.x, record.resolution.at(record.x))
    )
    places = np.searchsorted(record.x, case.sample.x[fit.atoms])
    kept = np.ones(len(record.x), bool)
    kept[places] = False
    kept |= np.count_nonzero(kept) < 2
    model = view.fit(record.counts, kept)
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
        scores={one.name: case.contest.mean(one.scores) for one in entries},
    )


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
    if name.startswith("grid") and record.grid is not None:
        return Gridded(record.grid, tuple(record.grid.encode(record.values[atoms])[0].tolist()))
    return Real(record.plain(atoms), record.grid)


def _given(record: Record, support: tuple[Limit, Limit]) -> Limits:
    low, high = support
    least, greatest = record.values[0].item(), record.values[-1].item()
    if least < low or greatest > high:
        raise ValueError(
            f"the values must lie in the support [{low:g}, {high:g}], but go from {least:g} to "
            f"{greatest:g}; widen it, or drop those rows."
        )
    return Limits(low, high, hard=True)


def _stored(known: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Returns floats in the precision in which the table has them."""
    name = (dtype or "").lower()
    if known.dtype == np.float64 and name in ("float32", "float", "float16", "halffloat"):
        return known.astype(np.float16 if name in ("float16", "halffloat") else np.float32)
    return known


def _ends(stored: NDArray[Any], dtype: str | None) -> tuple[Limit, Limit]:
    """Returns the least and the greatest value of the type."""
    if stored.dtype.kind == "M":
        return -(2**63) + 1, 2**63 - 1
    name = (dtype or stored.dtype.name).lower()
    if stored.dtype.kind == "f" or not name.startswith(("int", "uint")):
        return -np.inf, np.inf
    ends = np.iinfo(name)
    return int(ends.min), int(ends.max)
