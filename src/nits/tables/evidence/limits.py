"""Limits of a numeric column: never negative, a share, capped, or the ends of its type."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from nits.tables.evidence import tails
from nits.tables.evidence.records import Record
from nits.tables.evidence.scales import Scale
from nits.tables.evidence.smooth import Smooth
from nits.tables.evidence.tails import Tail

Limit = int | float

LARGEST = float(np.finfo(np.float64).max)

REACH = 10.0
"""Ranges of the values beyond which a tail seldom goes."""

SELDOM = -math.log(1e-3)
"""−log of the share of a tail that goes farther."""


@dataclass(frozen=True)
class Limits:
    """The ends of what can be, in the column's units; infinite where there is none.

    hard: Whether the user gave them.
    """

    low: Limit = -math.inf
    high: Limit = math.inf
    hard: bool = False


def find(record: Record, ends: tuple[Limit, Limit]) -> Limits:
    """Returns the limits that the values show; at most those of their type.

    ends: The least and the greatest number of the type.

    Values that have one sign keep it, unless a tail without a limit would hardly cross zero: so
    many columns end there that it needs less evidence than other ends.
    """
    low, high = ends
    lowest, highest = record.values[0].item(), record.values[-1].item()
    counts = record.counts.astype(np.float64)
    if not record.time:
        # A power of two keeps differences of the largest floats finite.
        unit = 2.0**-64 if max(-lowest, highest) > 1e300 else 1.0
        x = record.x * unit
        below, above = (x - x[0], counts), (x[-1] - x[::-1], counts[::-1])
        if lowest >= 0 and tails.near(lowest * unit, *below, tails.UNLIKELY):
            low = max(0, low)
        if highest <= 0 and tails.near(-highest * unit, *above, tails.UNLIKELY):
            high = min(0, high)
        if lowest >= 0 and highest <= 1 and tails.near(1 - highest, *above):
            high = min(1, high)
    low = lowest if tails.closed(counts[:5]) else low
    high = highest if tails.closed(counts[:-6:-1]) else high
    return Limits(low, high)


def beyond(model: Smooth, record: Record, scale: Scale, limits: Limits) -> tuple[Tail, Tail]:
    """Returns the tails of a smooth model, cut off at the limits; no mass without room.

    A tail is also as steep as keeps it, but for one value in a thousand, within ten times the range
    of the values: an outlier on a logarithmic scale would have others at its square.
    """
    ends = limits.low - record.base, limits.high - record.base
    gaps = record.values[0].item() - limits.low, limits.high - record.values[-1].item()
    least, greatest = record.x[[0, -1]].tolist()
    if record.step > 0:
        ends = least - _cells(gaps[0], record.step), greatest + _cells(gaps[1], record.step)
    reach = REACH * min(greatest / 2 - least / 2, LARGEST / REACH / 4) * 2
    largest = _largest(record)
    far = max(least - reach, -largest), min(greatest + reach, largest)
    lowest = model.low - scale.to(np.array([ends[0], far[0], -largest], np.float64))
    highest = scale.to(np.array([ends[1], far[1], largest], np.float64)) - model.high
    fine = record.resolution.at(record.x[[0, -1]])
    return (
        _within(model.lower, lowest.tolist(), gaps[0] >= fine[0]),
        _within(model.upper, highest.tolist(), gaps[1] >= fine[1]),
    )


def _largest(record: Record) -> float:
    """Returns the largest number of a type of floats, infinity for integers, which have limits."""
    dtype = record.values.dtype
    return float(np.finfo(dtype).max) if dtype.kind == "f" else math.inf


def _cells(gap: Limit, step: float) -> float:
    """Returns how far the cells of a grid reach whose points are at most a gap away."""
    return (math.floor(gap / step + 1e-6) + 0.5) * step if math.isfinite(gap) else gap


def _within(tail: Tail, places: list[float], any_room: bool) -> Tail:
    """Returns a tail that stays within limits.

    places: Distances of the limit, of ten ranges, and of the largest number.
    """
    room, reach, largest = places
    if not any_room or room <= 0:
        return replace(tail, share=0.0)
    rate = max(tail.rate, SELDOM / reach) if reach > 0 else tail.rate
    # A number so far away that nothing is left there limits nothing.
    return replace(tail, rate=rate, room=min(room, largest) if rate * largest < 700 else room)
