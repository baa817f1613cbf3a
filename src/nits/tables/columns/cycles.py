"""What the network reads of a time besides its place: the time of day, the weekday, the season."""

from __future__ import annotations

from nits.heads import Cycle
from nits.tables.columns.plainly import per_second

DAY = 86_400.0
CYCLES = ((DAY, 2), (7 * DAY, 3), (365.2425 * DAY, 2))
"""Seconds of each cycle, and its harmonics: three tell seven days apart."""


def of_ticks(unit: str | None, start: float, step: float, count: float) -> tuple[Cycle, ...]:
    """Returns the cycles of numbers x that stand for the times start + x · step, in ticks.

    count: How many numbers the training rows span. A cycle that all steps are multiples of, or that
    the rows do not go through half of, is left out.
    """
    if unit is None or unit.startswith("m"):
        return ()
    second = per_second(unit)
    found = []
    for seconds, harmonics in CYCLES:
        period = seconds * second
        whole = step % period == 0
        if not whole and count * step > period / 2:
            found.append(Cycle(step / period, (start % period) / period, harmonics))
    return tuple(found)
