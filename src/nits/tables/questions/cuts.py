"""Where a value cuts a column's distribution in two: numbers and shares of tails up to it.

Samples have values as the table records them, so a cut lies halfway between the recorded values
next to it: with whole numbers, x < 40 ends at 39.5, where the cell of 39 does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from nits.tables.columns import Coded, Column, Gridded, plainly
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.columns.first import Levels
from nits.tables.columns.listed import Listed
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Values, plain
from nits.tables.frames.values import Refused
from nits.tables.zones import local

SLACK = 1e-6
"""Part of a step by which values may miss each other and count as equal."""


class Cut(NamedTuple):
    """Where the values up to some value end.

    number: The greatest of their numbers.
    lower: They have the shares of the lower tail from this one on, counted from its end.
    upper: And those of the upper tail up to this one.
    """

    number: float
    lower: float
    upper: float


class One(NamedTuple):
    """A single value as the model sees it.

    number: What the model reads.
    log_prob: What is added to the model's log-probability, or stands in its place.
    fixed: Whether it stands in its place: the value lies beyond the training values.
    side: Beyond which end; see `Coded`.
    """

    number: float
    log_prob: float
    fixed: bool
    side: int

    @classmethod
    def of(cls, code: Coded) -> One:
        """Returns the only value of a column."""
        first = (code.numbers[0], code.log_prob[0], code.fixed[0], code.side[0])
        return cls(float(first[0]), float(first[1]), bool(first[2]), int(first[3]))


def one(value: Any) -> Values:
    """Returns one value as a column."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return local(plain(np.array([value])))
    return local(plain(np.array([value], object)))


def typed(column: Column, value: Any) -> Any:
    """Returns a value of the column's type; a text may stand for a number or a time."""
    if not isinstance(value, str) or column.facts.ordered:
        return value
    unit = getattr(column, "unit", None)
    try:
        if unit is not None:
            return np.datetime64(value) if unit.startswith("M") else np.timedelta64(int(value))
        if isinstance(column, Numeric):
            return int(value) if value.lstrip("+-").isdigit() else float(value)
    except ValueError:
        what = "a number" if unit is None else "a time"
        raise ValueError(f"{column.name!r} must be given {what}, but is given {value!r}.") from None
    return value


def valued(column: Column, value: Any) -> Values:
    """Returns one value that is given for a column, as a column of its type."""
    try:
        return one(typed(column, value))
    except Refused as error:
        raise TypeError(f"the value given for {column.name!r} {error}") from None


def coded(column: Column, value: Any) -> One:
    """Returns what the model sees of a value; one that the column cannot have is refused."""
    found = column.encode(valued(column, value))
    unknown = bool(found.unseen[0]) or found.log_prob[0] == -math.inf
    if unknown or (isinstance(column, Levels) and found.numbers[0] < 0):
        raise ValueError(_refusal(column, value))
    return One.of(found)


def _refusal(column: Column, value: Any) -> str:
    levels = [*getattr(column, "levels", ()), *getattr(column, "pooled", ())]
    if column.facts.ordered and column.facts.levels is not None:
        levels = list(column.facts.levels)
    if column.kind == "categorical" or column.facts.ordered:
        listed = ", ".join(str(level) for level in levels[:12])
        more = f" and {len(levels) - 12} more" if len(levels) > 12 else ""
        return f"{column.name!r} must be one of {listed}{more}, but is given {value!r}."
    return (
        f"{column.name!r} must be given a value that it can have, but {value!r} is none; "
        "see nits info, or give a range."
    )


def before(number: float) -> float:
    """Returns the next smaller number that the model can tell apart."""
    return float(np.nextafter(np.float32(number), np.float32(-np.inf)))


def cut(column: Column, value: Any, inclusive: bool) -> Cut:
    """Returns where the values below a value end, or those up to it.

    inclusive: Whether the value itself is among them.
    """
    values = valued(column, value)
    if bool(values.missing[0]):
        raise ValueError(f"an end of the range of {column.name!r} must be a value, but is missing.")
    if not isinstance(column, Numeric):
        return _first(column, values, inclusive)
    exact, broken = plainly.numbers(values, column.facts, column.unit)
    if bool(broken[0]):
        return _outside(column, values, value)
    middle, width = _middle(column, exact, inclusive)
    return Cut(
        _number(column, exact, inclusive, middle),
        _passed(column, LOWER, middle, width),
        _passed(column, UPPER, middle, width),
    )


def _outside(column: Numeric, values: Values, value: Any) -> Cut:
    """Returns the cut at an infinite value."""
    if values.array.dtype.kind != "f" or np.isnan(values.array[0]):
        raise ValueError(_refusal(column, value))
    if values.array[0] > 0:
        return Cut(math.inf, 0.0, 1.0)
    return Cut(column.span[0] - 0.5, 1.0, 0.0)


def _first(column: Column, values: Values, inclusive: bool) -> Cut:
    """Returns the cut of a column of an old file, which has no tails."""
    number = float(column.encode(values).numbers[0])
    if column.kind == "continuous":
        return Cut(number if inclusive else before(number), 0.0, 0.0)
    return Cut(math.floor(number) - (not inclusive and number == math.floor(number)), 0.0, 0.0)


def step(column: Numeric, x: Any) -> float:
    """Returns the distance between recorded values near x; 0 where all floats may occur."""
    ruler = column.ruler
    if isinstance(column, Gridded):
        return float(column.grid.width)
    if ruler.grid is not None:
        return float(ruler.grid.width)
    if ruler.resolution.digits or isinstance(column, Listed):
        return float(ruler.resolution.at(x)[0])
    return 0.0


def _middle(column: Numeric, exact: Any, inclusive: bool) -> tuple[float, float]:
    """Returns the point between recorded values at which to cut, less the base, and their step."""
    ruler = column.ruler
    x = ruler.numbers(exact)
    width = step(column, x)
    if not width:
        return float(x[0]), 0.0
    if ruler.grid is None:
        near = ruler.resolution.rounded(x)
    else:
        near = ruler.numbers(ruler.recorded(x, -math.inf, math.inf))
    ahead = float(near[0] - x[0])
    here = abs(ahead) <= SLACK * width
    up = inclusive if here else ahead < 0
    return float(near[0]) + (width / 2 if up else -width / 2), width


def _number(column: Numeric, exact: Any, inclusive: bool, middle: float) -> float:
    """Returns the greatest number up to the cut, which is above that of a hole."""
    low, high = column.ends()
    side = int(column.ruler.side(exact)[0])
    if side == LOWER:
        return low - 0.5 if column.kind != "continuous" else before(low)
    if side == UPPER:
        return high
    number, at = (part[0] for part in column.place(exact))
    if column.kind != "continuous":
        if bool(at):
            reached = number if inclusive else number - 1
        else:
            reached = number - float(column.values(np.array([number]))[0] > exact[0])
        return max(float(reached), low - 0.5)
    if float(np.float32(number)) in {float(place) for place in column.spikes}:
        return float(np.float32(number)) if inclusive else before(number)
    place = column.ruler.scale.to(np.array([middle]))[0]
    place = float(np.float32(np.clip(place, low, high)))
    return place if place > low else before(low)


def _passed(column: Numeric, side: int, middle: float, width: float) -> float:
    """Returns the share of a tail between its end and a cut."""
    ruler = column.ruler
    tail = column.beyond.lower if side == LOWER else column.beyond.upper
    extreme = ruler.least if side == LOWER else ruler.greatest
    if not tail or math.isinf(extreme):
        return 0.0
    end = float(ruler.numbers(np.array([extreme]))[0])
    if side * (middle - end) <= width / 2 * (1 + SLACK):
        return 0.0
    with np.errstate(all="ignore"):
        found = float(ruler.passed(np.array([middle]), side, False)[0])
    return 1.0 if math.isnan(found) else min(max(found, 0.0), 1.0)
