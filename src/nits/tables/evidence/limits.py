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
    """
    low, high = ends
    lowest, highest = record.values[0].item(), record.values[-1].item()
    counts = record.counts.astype(np.float64)
    if not record.time:
        # A power of two keeps differences of the largest floats finite.
        unit = 2.0**-64 if max(-lowest, highest) > 1e300 else 1.0
        x = record.x * unit
        below, above = (x - x[0], counts), (x[-1] - x[::-1], counts[::-1])
        if lowest >= 0 and tails.near(lowest * unit, *below):
            low = max(0, low)
        if highest <= 0 and tails.near(-highest * unit, *above):
            high = min(0, high)
        if lowest >= 0 and highest <= 1 and tails.near(1 - highest, *above):
            high = min(1, high)
    low = lowest if tails.closed(counts[:5]) else low
    high = highest if tails.closed(counts[:-6:-1]) else high
    return Limits(low, high)


def beyond(model: Smooth, record: Record, scale: Scale, limits: Limits) -> tuple[Tail, Tail]:
    """Returns the tails of a smooth model, cut off at the limits; no mass without room."""
    ends = limits.low - record.base, limits.high - record.base
    places = scale.to(np.array([ends[0] - record.step / 2, ends[1] + record.step / 2], np.float64))
    gaps = record.values[0].item() - limits.low, limits.high - record.values[-1].item()
    fine = record.resolution.at(record.x[[0, -1]])
    lower = _within(model.lower, model.low - float(places[0]), gaps[0] >= fine[0])
    return lower, _within(model.upper, float(places[1]) - model.high, gaps[1] >= fine[1])


def _within(tail: Tail, room: float, any_room: bool) -> Tail:
    return replace(tail, room=room) if any_room and room > 0 else replace(tail, share=0.0)
