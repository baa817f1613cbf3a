"""How each column is shown: along an axis, or as a list of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns import Column, plainly
from nits.tables.columns.first import First, Levels
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Values
from nits.tables.questions import cuts
from nits.tables.questions.single import listed

Numbers = NDArray[np.float64]

BINS = 128
"""Bins of an axis."""

MARKS = 40
"""Discrete columns of at most so many values have a bar for each on their axis."""

FAR = 0.0005
"""The share of draws beyond each end of an axis."""

SPREAD = 30.0
"""Ratio of the 99th to the 1st percentile from which positive values have a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """A column of numbers, times or durations along an axis.

    low, high: The ends of the axis, on its scale.
    log: Whether the scale is logarithmic.
    what: "number", "time" (milliseconds since 1970) or "duration" (seconds).
    marks: Values with a probability of their own, and the model's numbers for them.
    whole: Whether the marks are all values that there are.
    step: The distance between recorded numbers; 0 where any number may occur.
    """

    column: Column
    low: float
    high: float
    log: bool
    what: str
    marks: Numbers
    numbers: Numbers
    whole: bool
    step: float

    def scaled(self, x: Numbers) -> Numbers:
        """Returns places on the scale."""
        if not self.log:
            return x
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log10(np.maximum(x, 0.0)))

    def bins(self, x: Numbers, count: int = BINS) -> NDArray[np.int64]:
        """Returns the bin of each value: −1 below the axis, `count` above it."""
        place = (self.scaled(x) - self.low) / (self.high - self.low) * count
        found = np.floor(np.nan_to_num(np.clip(place, -1, count), nan=-1.0)).astype(np.int64)
        return np.where(place == count, count - 1, found)


@dataclass(frozen=True)
class Listing:
    """A column of levels.

    levels: What users call them.
    numbers, shares: The model's number of each level, and its share in that number.
    """

    column: Column
    levels: tuple[Any, ...]
    numbers: NDArray[np.int64]
    shares: Numbers


View = Axis | Listing


def view(column: Column, drawn: Values) -> View:
    """Returns how to show a column, of which there are some draws."""
    amount = isinstance(column, Numeric | First) and not isinstance(column, Levels)
    if not amount or column.facts.ordered or column.kind == "categorical":
        levels, numbers, shares = listed(column)
        return Listing(column, tuple(levels), numbers.astype(np.int64), shares)
    return _axis(column, drawn)


def _axis(column: Column, drawn: Values) -> Axis:
    """Returns an axis that all but a few draws lie on; of few values, all of them."""
    numbers, whole = _marked(column)
    marks = np.empty(0)
    if len(numbers):
        marks = amounts(column.decode(numbers, np.random.default_rng(0)))
    x = marks if whole else amounts(drawn)
    x = x[np.isfinite(x)] if np.isfinite(x).any() else np.array([0.0, 1.0])
    kind = drawn.array.dtype.kind
    log = not whole and kind not in "mM" and _skewed(x)
    low, high = _ends(np.log10(x) if log else x, whole)
    what = {"M": "time", "m": "duration"}.get(kind, "number")
    step = recorded_step(column, np.median(x)) if what == "number" else 0.0
    return Axis(column, low, high, log, what, marks, numbers, whole, step)


def recorded_step(column: Column, x: Any) -> float:
    """Returns the distance between recorded numbers near x; 0 where any number may occur."""
    if not isinstance(column, Numeric):
        return 1.0 if column.kind == "integer" else 0.0
    return cuts.step(column, np.array([x - column.ruler.base], np.float64))


def _skewed(x: Numbers) -> bool:
    low, high = np.quantile(x, [0.01, 0.99])
    return bool(x.min() > 0 and high > SPREAD * low)


def _ends(x: Numbers, whole: bool) -> tuple[float, float]:
    """Returns the ends of an axis, with some room beyond its values."""
    if whole:
        room = 0.6 * np.diff(np.sort(x)).min() if len(x) > 1 else 0.5
        return float(x.min() - room), float(x.max() + room)
    low, high = np.quantile(x, [FAR, 1 - FAR])
    room = 0.02 * (high - low) or max(abs(low), 1.0) * 1e-3
    least = 0.0 if x.min() >= 0 and low < 4 * room else low - room
    return float(least), float(high + room)


def _marked(column: Column) -> tuple[Numbers, bool]:
    """Returns the numbers that have a bar of their own, and whether these are all."""
    if not isinstance(column, Numeric):
        return np.empty(0), False
    if column.kind == "continuous":
        return column.spikes.astype(np.float64), False
    low, high = column.ends()
    if high - low + 1 > MARKS:
        return np.empty(0), False
    return np.arange(low, high + 1), True


def amounts(values: Values) -> Numbers:
    """Returns values as numbers, NaN for holes: times in milliseconds, durations in seconds."""
    array = values.array
    if array.dtype.kind in "mM":
        second = plainly.per_second(array.dtype.str[1:])
        found = array.astype(np.int64).astype(np.float64) / second
        found = found * (1000.0 if array.dtype.kind == "M" else 1.0)
    else:
        found = np.where(values.missing, math.nan, array).astype(np.float64)
    return np.where(values.missing, math.nan, found)


def spelled(value: Any) -> str:
    """Returns a value as users read and write it."""
    if isinstance(value, np.datetime64):
        text = str(value.astype("M8[ms]"))
        return text.removesuffix(".000").removesuffix("T00:00:00")
    if isinstance(value, np.timedelta64):
        return f"{value / np.timedelta64(1, 's'):.12g}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.9g}"
    return str(value)
