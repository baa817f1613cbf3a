"""A column as an axis: bins on the column's own scale, or one for each of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.report import ticks, words
from nits.report.ticks import Tick
from nits.tables.columns import Column, plainly
from nits.tables.columns.gridded import Gridded
from nits.tables.columns.listed import Listed
from nits.tables.columns.numeric import Numeric
from nits.tables.evidence.scales import Scale
from nits.tables.frames import Values

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_BARS = 16
"""Values that have a bar of their own; the others of a category share one."""

BINS = 44
ENDS = (0.002, 0.998)
"""The quantiles of the rows between which bins lie."""

FREQUENT, DWARFING = 0.02, 0.2
"""The shares from which a value is drawn apart from a density, and from a grid."""

VERY_MANY = 4
"""Values per bin from which it does not show that some bins have one more than others."""

NOWHERE = -1
"""The bin of what is missing, or has none."""

FARTHEST = 2**63 - 1
"""The last tick of times and durations, and of the other sign the first."""


def plain(column: Column, values: Values) -> NDArray[Any]:
    """Returns a column's values as integers or floats, whatever where they are missing."""
    unit = getattr(column, "unit", None) or plainly.unit_of(values.array)
    return plainly.numbers(values, column.facts, unit)[0]


def keys(values: Values) -> list[Any]:
    """Returns values as one can look them up: times in ticks, None where they are missing."""
    array = values.array.astype(np.int64) if values.array.dtype.kind in "mM" else values.array
    return [
        None if hole else item
        for item, hole in zip(array.tolist(), values.missing.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Bars:
    """A bin for each of some values, and one for all others.

    labels: What the bars say.
    places: The bin of each value, by its key.
    others: Whether the last bin is for all values that have none of their own.
    """

    labels: tuple[str, ...]
    places: dict[Any, int]
    others: bool

    def __len__(self) -> int:
        return len(self.labels)

    def bins(self, values: Values) -> Places:
        """Returns the bin of each value; `NOWHERE` for missing ones."""
        rest = len(self) - 1 if self.others else NOWHERE
        found = [NOWHERE if k is None else self.places.get(k, rest) for k in keys(values)]
        return np.array(found, np.int64)

    @property
    def edges(self) -> Numbers:
        """The places from 0 to 1 between which bins lie."""
        return np.linspace(0, 1, len(self) + 1)

    @property
    def ticks(self) -> list[Tick]:
        """The bars' labels, in the middle of each."""
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        pairs = zip(middle.tolist(), self.labels, strict=True)
        return [Tick(place, words.short(label, 14)) for place, label in pairs]


@dataclass(frozen=True)
class Amounts:
    """Bins along a scale.

    column: Whose values they are.
    scale: The column's own; None for values as they are.
    reach: The ends of the axis on the scale.
    edges: The places from 0 to 1 between which bins lie.
    ticks: Round values.
    """

    column: Column
    scale: Scale | None
    reach: tuple[float, float]
    edges: Numbers
    ticks: tuple[Tick, ...]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def bins(self, values: Values) -> Places:
        """Returns the bin of each value; `NOWHERE` for missing ones and those beyond the ends."""
        at = placed(self.column, self.scale, plain(self.column, values), self.reach)
        found = np.searchsorted(self.edges, at, side="right") - 1
        found = np.where(at == 1, len(self) - 1, found)
        outside = values.missing | ~((at >= 0) & (at <= 1))
        return np.where(outside, NOWHERE, found).astype(np.int64)


Axis = Bars | Amounts


def placed(
    column: Column, scale: Scale | None, values: NDArray[Any], reach: tuple[float, float]
) -> Numbers:
    """Returns where plain values lie on an axis from 0 to 1."""
    low, high = reach
    found: Numbers = (_on_scale(column, scale, values) - low) / (high - low)
    return found


def _on_scale(column: Column, scale: Scale | None, values: NDArray[Any]) -> Numbers:
    less = column.ruler.numbers(values) if isinstance(column, Numeric) else values
    found = np.asarray(less, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return found if scale is None else scale.to(found)


def axis(column: Column, values: Values, bins: int = BINS, bars: int = MOST_BARS) -> Axis:
    """Returns the axis of a column's values: bars if they are categories or few, else bins."""
    if column.kind == "categorical" and not isinstance(column, Numeric):
        return _bars(column, values, bars)
    known = plain(column, values)[~values.missing]
    if column.kind != "continuous" and len(np.unique(known)) <= bars:
        return _bars(column, values, bars, ordered=True)
    return _amounts(column, known, apart(column, values), bins)


def _bars(column: Column, values: Values, most: int, ordered: bool = False) -> Bars:
    found: dict[Any, int] = {}
    for key in keys(values):
        if key is not None:
            found[key] = found.get(key, 0) + 1
    levels = column.facts.levels
    if ordered and levels is not None:
        listed = [level for level in levels if level in found]
    elif ordered:
        listed = sorted(found)
    else:
        listed = sorted(found, key=lambda key: (-found[key], str(key)))
    others = len(listed) > most
    shown = listed[: most - 1] if others else listed
    labels = [words.value(_told(key, values)) for key in shown]
    if others:
        labels.append(f"{len(listed) - len(shown):,} others")
    return Bars(tuple(labels), {key: i for i, key in enumerate(shown)}, others)


def _told(key: Any, values: Values) -> Any:
    """Returns a value from its key."""
    dtype = values.array.dtype
    return np.array([key], np.int64).view(dtype)[0] if dtype.kind in "mM" else key


def _amounts(column: Column, known: NDArray[Any], off: NDArray[Any], bins: int) -> Amounts:
    """Returns bins; values that are drawn apart do not count for their ends."""
    scale = column.ruler.scale if isinstance(column, Numeric) else None
    body = known[~np.isin(known, off)] if len(off) else known
    at = _on_scale(column, scale, body if len(np.unique(body)) > 1 else known)
    at = at[np.isfinite(at)]
    if len(at) == 0:  # all values have no place on it, such as zeros on a logarithm
        scale, at = None, _on_scale(column, None, known)
    reach = _reach(at)
    edges = np.linspace(0, 1, bins + 1)
    if isinstance(column, Gridded):
        edges = _between_steps(column, scale, reach, edges)
    elif isinstance(column, Listed):
        edges = _between_values(np.unique(at), reach, edges)
    return Amounts(column, scale, reach, edges, tuple(_ticks(column, scale, reach)))


def _reach(at: Numbers) -> tuple[float, float]:
    """Returns the ends of an axis, with a little room if values end there."""
    low, high = (float(end) for end in np.quantile(at, ENDS, method="nearest"))
    if low == high:
        low, high = float(at.min()), float(at.max())
    if low == high:
        return low - 0.5, high + 0.5
    margin = 0.01 * (high - low)
    return low - margin, high + margin


def _between_steps(
    column: Gridded, scale: Scale | None, reach: tuple[float, float], edges: Numbers
) -> Numbers:
    """Returns edges half-way between the steps of a grid, so that bins hold whole steps."""
    width = column.grid.width
    low, high = (_back(scale, np.array([end]))[0] for end in reach)
    raw = _back(scale, edges * (reach[1] - reach[0]) + reach[0])
    start = float(column.amount(np.zeros(1))[0])
    halves = np.unique(np.floor((np.clip(raw, low, high) - start) / width) + 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = halves * width + start
        on = values if scale is None else scale.to(values)
    found = np.unique((on - reach[0]) / (reach[1] - reach[0]))
    inside = found[(found > 1e-6) & (found < 1 - 1e-6)]
    return np.concatenate([[0.0], inside, [1.0]])


def _between_values(at: Numbers, reach: tuple[float, float], edges: Numbers) -> Numbers:
    """Returns edges half-way between values, so that bins hold as many; even ones for very many."""
    places = (at - reach[0]) / (reach[1] - reach[0])
    inside = places[(places > 0) & (places < 1)]
    if not 1 < len(inside) < VERY_MANY * len(edges):
        return edges
    each = -(-len(inside) // (len(edges) - 1))
    return np.concatenate([[0.0], ((inside[1:] + inside[:-1]) / 2)[each - 1 :: each], [1.0]])


def _back(scale: Scale | None, at: Numbers) -> Numbers:
    return at if scale is None else scale.back(at)


def _ticks(column: Column, scale: Scale | None, reach: tuple[float, float]) -> list[Tick]:
    base = column.ruler.base if isinstance(column, Numeric) else 0
    low, high = (float(end) + base for end in _back(scale, np.array(reach)).tolist())
    unit = getattr(column, "unit", None)

    def place(values: NDArray[Any]) -> Numbers:
        return placed(column, scale, values, reach)

    if column.facts.ordered and column.facts.levels is not None:
        levels = column.facts.levels
        some = np.unique(np.linspace(0, len(levels) - 1, 5).astype(int))
        return [
            Tick(float(at), words.short(str(levels[k]), 14))
            for k, at in zip(some.tolist(), place(some), strict=True)
            if 0 <= at <= 1
        ]
    if unit is None:
        return ticks.of_numbers(low, high, place)
    of = ticks.of_times if unit.startswith("M") else ticks.of_durations
    first, last = (min(max(int(end), -FARTHEST), FARTHEST) for end in (low, high))
    return of(first, last, unit, place)


def apart(column: Column, values: Values) -> NDArray[Any]:
    """Returns the atoms that are drawn apart from the other values, as plain numbers.

    Those of a grid or a list are drawn in their place, unless they would dwarf everything else.
    """
    if isinstance(column, Listed):
        return _frequent(column, values, plainly.array(column.listed), DWARFING)
    if isinstance(column, Gridded):
        steps = column.values(np.array(column.atoms, np.float64))
        return _frequent(column, values, steps, DWARFING)
    return _frequent(column, values, plainly.array(getattr(column, "atoms", ())), FREQUENT)


def named(column: Column, value: Any, digits: int = 4) -> str:
    """Returns a plain value of a column as a reader would write it."""
    if column.facts.ordered and column.facts.levels is not None:
        return str(column.facts.levels[int(value)])
    unit = getattr(column, "unit", None)
    told = value if unit is None else np.array([value], np.int64).view(unit)[0]
    return words.value(told, digits)


def _frequent(column: Column, values: Values, every: NDArray[Any], least: float) -> NDArray[Any]:
    if not len(every):
        return every
    found, counts = np.unique(plain(column, values)[~values.missing], return_counts=True)
    often = found[counts >= least * len(values)]
    return every[np.isin(every, often)]
