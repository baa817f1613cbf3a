"""What was decided about a column, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from nits.tables.evidence.grids import Grid
from nits.tables.evidence.resolution import Resolution
from nits.tables.evidence.scales import Scale
from nits.tables.evidence.tails import NO_TAIL, Tail


@dataclass(frozen=True)
class Levels:
    """Categories, each with a probability.

    values: Strings, booleans or numbers, in order; times and durations as integers.
    pooled, shares: Rare categories that are taken for one, and how often each of them is meant by
        it.
    """

    name: ClassVar[str] = "levels"
    values: tuple[Any, ...]
    pooled: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Ordered:
    """Observed values in order, each a cell as wide as its share: an uneven grid.

    A smooth distribution over the cells, uniform to begin with, has these shares as its masses.
    """

    name: ClassVar[str] = "ordered"
    values: tuple[float | int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Gridded:
    """Points of an even grid with the masses of their cells, and atoms, given by their place k."""

    name: ClassVar[str] = "grid"
    grid: Grid
    atoms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Real:
    """A density, and a probability of its own at each atom.

    grid: The fine grid on which the values lie, if any: samples are rounded to it.
    """

    name: ClassVar[str] = "real"
    atoms: tuple[float | int, ...] = ()
    grid: Grid | None = None


Kind = Levels | Ordered | Gridded | Real


@dataclass(frozen=True)
class Decision:
    """How a column is to be modelled.

    kind: The candidate that won, with what it needs.
    base: What is taken off integers and times before they become floats, 0 for most.
    scale: Where the values, less the base, are modelled; None for strings and booleans.
    ends: Where on the scale the body ends and the tails begin: the least and the greatest value,
        or on an even grid the outer edges of their cells.
    lower, upper: What lies beyond the ends, in units of the scale.
    low, high: Limits that were found or given, in the column's units; infinite where there is none.
    hard: Whether the user gave the limits, so that nothing beyond them is possible.
    resolution: How finely values are recorded; None for strings and booleans.
    unit: The unit of the integers that times and durations are, such as "ns"; None for others.
    rows: How many known values there were.
    scores: Nats per row of held-out values by candidate, best first.
    reason: A few words.
    """

    kind: Kind
    rows: int
    reason: str
    base: int = 0
    scale: Scale | None = None
    ends: tuple[float, float] = (-math.inf, math.inf)
    lower: Tail = NO_TAIL
    upper: Tail = NO_TAIL
    low: float = -math.inf
    high: float = math.inf
    hard: bool = False
    resolution: Resolution | None = None
    unit: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
