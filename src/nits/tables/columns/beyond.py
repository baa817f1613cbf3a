"""How much of a row's probability lies beyond the training values of a column, equation (28)."""

from __future__ import annotations

from typing import NamedTuple

from nits.tables.evidence.tails import Tail

Interval = tuple[float, float]
"""Numbers above the first end, up to the second."""

EVEN = 0.1
"""ε of equation (28): the part of the mass beyond that every row has alike, so that a value beyond
has a probability however far from the end it is expected."""


class End(NamedTuple):
    """What lies beyond one end, given the model's mass m of the outermost numbers in a row.

    outer: The outermost numbers.
    slope, floor: The mass beyond is slope · m + floor.
    left: What the outermost numbers keep of m.
    """

    outer: Interval
    slope: float
    floor: float
    left: float

    def __bool__(self) -> bool:
        return self.floor > 0


class Beyond(NamedTuple):
    """Both ends of a column, and what is left of the model's mass between the outermost numbers."""

    lower: End
    upper: End
    left: float

    def pieces(self, interval: Interval) -> list[tuple[Interval, float]]:
        """Returns an interval cut at the outermost numbers, and what is left of each piece."""
        found, low = [], interval[0]
        for end, own in ((self.lower, self.lower.left), (self.upper, self.upper.left)):
            for stop, left in ((end.outer[0], self.left), (end.outer[1], own)):
                stop = min(stop, interval[1])
                if end and stop > low:
                    found.append(((low, stop), left))
                    low = stop
        return [*found, ((low, interval[1]), self.left)] if interval[1] > low else found


NOTHING = End((0.0, 0.0), 0.0, 0.0, 1.0)

NOWHERE = Beyond(NOTHING, NOTHING, 1.0)
"""Of a column that cannot have other values than those of the training rows."""


def beyond(tails: tuple[Tail, Tail], outer: tuple[Interval, Interval], known: float) -> Beyond:
    """Returns both ends from their tails, for a column of which a share of the rows is known."""
    left = 1 - EVEN * known * (tails[0].share + tails[1].share)

    def end(tail: Tail, numbers: Interval) -> End:
        if not tail.share:
            return NOTHING
        slope = (1 - EVEN) * tail.cut
        return End(numbers, slope, EVEN * known * tail.share, left - slope)

    return Beyond(end(tails[0], outer[0]), end(tails[1], outer[1]), left)
