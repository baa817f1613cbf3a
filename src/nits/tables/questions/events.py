"""Events of one column: the part of its distribution in which a condition holds.

A distribution consists of the model's law of the column's numbers, where a hole is a number, too,
and of the two tails beyond the training values, equation (28). An event is a set of intervals of
numbers and of the tails, so its probability is a sum of differences of the cdf, and a draw inside
it is a quantile between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nits.tables.columns import Categories, Column, plainly
from nits.tables.columns.first import First, Levels
from nits.tables.columns.numeric import Numeric
from nits.tables.questions import cuts
from nits.tables.questions.conditions import Condition, Missing, Other, Range, Value
from nits.tables.questions.cuts import Cut, One, coded

Interval = tuple[float, float]
Intervals = tuple[Interval, ...]

WHOLE = ((-math.inf, math.inf),)
TAIL = ((0.0, 1.0),)


@dataclass(frozen=True)
class Event:
    """A part of a column's values.

    numbers: Intervals (low, high] of the model's numbers, ascending.
    lower, upper: Intervals of the shares of what lies beyond an end, counted from that end.
    """

    numbers: Intervals
    lower: Intervals = ()
    upper: Intervals = ()

    def __and__(self, other: Event) -> Event:
        return Event(
            _both(self.numbers, other.numbers),
            _both(self.lower, other.lower),
            _both(self.upper, other.upper),
        )

    @property
    def empty(self) -> bool:
        """Whether no value is in it."""
        return not (self.numbers or self.lower or self.upper)

    def without(self, other: Event) -> Event:
        """Returns what is in this event and not in the other."""
        return Event(
            _less(self.numbers, other.numbers),
            _less(self.lower, other.lower),
            _less(self.upper, other.upper),
        )


def _both(left: Intervals, right: Intervals) -> Intervals:
    pairs = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))


def _less(left: Intervals, right: Intervals) -> Intervals:
    for low, high in right:
        left = _both(left, ((-math.inf, low), (high, math.inf)))
    return left


def anything(column: Column) -> Event:
    """Returns the event of all values, and holes."""
    return Event(WHOLE, *_tails(column))


def known(column: Column) -> Event:
    """Returns the event of all values that are not missing."""
    return Event((column.within,), *_tails(column))


def _tails(column: Column) -> tuple[Intervals, Intervals]:
    """Returns all of both tails."""
    ends = column.beyond
    return TAIL if ends.lower else (), TAIL if ends.upper else ()


def event(column: Column, conditions: Sequence[Condition]) -> Event:
    """Returns the event in which all conditions on a column hold."""
    found = anything(column)
    for condition in conditions:
        found = found & _one(column, condition)
    if found.empty:
        said = " and ".join(f"{column.name} {condition}" for condition in conditions)
        raise ValueError(
            f"the conditions on {column.name!r} must leave a value that it can have, "
            f"but {said} leaves none."
        )
    return found


def _one(column: Column, condition: Condition) -> Event:
    if isinstance(condition, Missing):
        return _hole(column)
    if isinstance(condition, Range):
        return _range(column, condition)
    if isinstance(condition, Value):
        return _points(column, (condition.value,))
    inside = _points(column, condition.values)
    return known(column).without(inside) if isinstance(condition, Other) else inside


def _hole(column: Column) -> Event:
    if not column.optional or isinstance(column, First):
        raise ValueError(
            f"{column.name!r} cannot be missing, since no value of it was missing in training."
        )
    low, high = column.within
    return Event((_at(column, low if low > -math.inf else high + 1),))


def _range(column: Column, given: Range) -> Event:
    """Returns the event of values between two ends; of categories, those that are numbers."""
    if given.low is None and given.high is None:
        return known(column)
    if isinstance(column, Categories | Levels):
        return _points(column, _levels_between(column, given))
    below = None if given.low is None else cuts.cut(column, given.low, not given.from_low)
    up_to = None if given.high is None else cuts.cut(column, given.high, given.to_high)
    found = known(column)
    if below is not None:
        found = found.without(_up_to(below))
    if up_to is not None:
        found = found & _up_to(up_to)
    if not _both(found.numbers, _body(column)) and not found.lower and not found.upper:
        raise ValueError(
            f"the range of {column.name!r} must hold a value, but {column.name} {given} has none."
        )
    return found


def _body(column: Column) -> Intervals:
    """Returns where the numbers of a column's training values lie."""
    if not isinstance(column, Numeric):
        return WHOLE
    low, high = column.span
    spikes = column.spikes.tolist()
    return ((cuts.before(min([low, *spikes])), float(np.float32(max([high, *spikes])))),)


def _up_to(cut: Cut) -> Event:
    """Returns the event of values up to a cut."""
    lower = ((cut.lower, 1.0),) if cut.lower < 1 else ()
    upper = ((0.0, cut.upper),) if cut.upper > 0 else ()
    return Event(((-math.inf, cut.number),), lower, upper)


def _levels_between(column: Categories | Levels, given: Range) -> tuple[Any, ...]:
    """Returns the categories between two ends, if they are numbers or times."""
    levels = (*column.levels, *column.pooled)
    if isinstance(levels[0], str | bool):
        raise ValueError(
            f"{column.name!r} has categories without an order, so a range of it means nothing; "
            "give a set of them."
        )
    ends = [None if end is None else _plain(column, end) for end in (given.low, given.high)]
    found = [
        level
        for level in levels
        if (ends[0] is None or level > ends[0] or (given.from_low and level == ends[0]))
        and (ends[1] is None or level < ends[1] or (given.to_high and level == ends[1]))
    ]
    if not found:
        raise ValueError(
            f"the range of {column.name!r} must hold a value, but {column.name} {given} has none."
        )
    unit = getattr(column, "unit", None)
    return tuple(found if unit is None else np.array(found, np.int64).view(unit))


def _plain(column: Categories | Levels, value: Any) -> Any:
    values = cuts.valued(column, value)
    return plainly.numbers(values, column.facts, getattr(column, "unit", None))[0][0].item()


def _points(column: Column, values: Sequence[Any]) -> Event:
    """Returns the event of some values, each of which must have a probability of its own."""
    if not values:
        raise ValueError(f"the values of {column.name!r} must be at least one, but there is none.")
    _refuse_part_of_pool(column, values)
    numbers: list[Interval] = []
    beyond = Event(())
    for value in values:
        one = coded(column, value)
        _refuse_density(column, value, one)
        if one.fixed and isinstance(column, Numeric):
            below, up_to = (_up_to(cuts.cut(column, value, to)) for to in (False, True))
            part = up_to.without(below)
            beyond = Event((), beyond.lower + part.lower, beyond.upper + part.upper)
        else:
            numbers.append(_at(column, one.number))
    lower, upper = (tuple(sorted(set(part))) for part in (beyond.lower, beyond.upper))
    return Event(_joined(numbers), lower, upper)


def _refuse_part_of_pool(column: Column, values: Sequence[Any]) -> None:
    pooled = getattr(column, "pooled", ())
    some = [value for value in values if value in pooled]
    if some and set(some) != set(pooled):
        raise ValueError(
            f"{some[0]!r} of {column.name!r} is one of {len(pooled)} rare categories that are "
            "modelled as one; give all of them."
        )


def _refuse_density(column: Column, value: Any, one: One) -> None:
    if column.kind != "continuous":
        return
    spikes = column.spikes if isinstance(column, Numeric) else ()
    atoms = {float(np.float32(place)) for place in spikes}
    if one.fixed or float(np.float32(one.number)) not in atoms:
        raise ValueError(
            f"{column.name!r} has a density, so the single value {value} has probability zero; "
            "ask for a range."
        )


def _at(column: Column, number: float) -> Interval:
    """Returns the interval of one number."""
    if column.kind == "continuous":
        return cuts.before(number), float(np.float32(number))
    return number - 0.5, number


def _joined(intervals: Sequence[Interval]) -> Intervals:
    """Returns intervals of neighbouring integers as one."""
    found: list[Interval] = []
    for low, high in sorted(set(intervals)):
        if found and low <= found[-1][1] + 0.5:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)
