"""Even grids, origin + k · step, on which all values of a column lie: found, verified, encoded.

One tolerance serves the search and the encoder: a few units in the last place of the largest
magnitude, in the precision in which the values were stored. Integers and times are exact.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import steps

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

ULPS = {"float16": 8, "float32": 8, "float64": 32}
"""Units in the last place by which a stored
value may miss its grid point: for arithmetic done before (z-scores), and in float64 for decimals
printed with 15 digits, as many programs write them."""

SURE = math.log(1e6)
"""Log-odds against chance at which values that fall on a grid are believed to come from one."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks in a second, by the unit of times and durations."""

FARTHEST = 2.0**62
"""Steps from the origin beyond which places are not told apart."""


@dataclass(frozen=True)
class Grid:
    """The numbers (origin + k · step) · 10^−exponent, k = 0 being the least training value.

    origin, step: Whole numbers, so that decimals and integers are exact to the last digit; floats
        if the step is no decimal number.
    exponent: Decimal digits after the point; negative for multiples of powers of ten.
    precision: Tolerance relative to the largest magnitude; 0 for integers and times.
    largest: The largest magnitude among the training values.
    seen: Training values, ascending, whose last digits the arithmetic of the grid would miss.
    """

    origin: int | float
    step: int | float
    exponent: int = 0
    precision: float = 0.0
    largest: float = 0.0
    seen: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "seen", tuple(self.seen))

    @property
    def width(self) -> float:
        """The step in units of the column."""
        return float(_shifted(np.float64(self.step), -self.exponent))

    @property
    def start(self) -> float:
        """The value at k = 0, as a float."""
        return float(_shifted(np.float64(self.origin), -self.exponent))

    @property
    def exact(self) -> bool:
        """Whether the column holds integers or times."""
        return self.precision == 0

    def encode(self, values: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
        """Returns k of the nearest grid point of each value, and whether the value lies on it."""
        if self.exact and values.dtype.kind in "iumM":
            return self._encode_integers(integers(values))
        x = np.asarray(values, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            count = np.rint((_shifted(x, self.exponent) - self.origin) / self.step)
        k = np.clip(np.nan_to_num(count), -FARTHEST, FARTHEST).astype(np.int64)
        return k, np.isfinite(x) & (np.abs(self.points(k) - x) <= self.tolerance(x))

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether values lie on the grid, also where they are too far to be counted."""
        if not (self.exact and values.dtype.kind in "iumM"):
            return self.encode(values)[1]
        found: NDArray[np.bool_] = self._steps(integers(values))[2] == 0
        return found

    def decode(self, k: Places | NDArray[np.uint64]) -> NDArray[Any]:
        """Returns the values at k: int64 or uint64 for integers (times as int64), else float64.

        k: Steps, as uint64 modulo 2^64 if the training values span more than int64 holds.
        """
        if not self.exact:
            return self.points(k.astype(np.int64))
        first = int(self.origin)
        # k modulo 2^64 is of a range that int64 does not hold: all unsigned, or some are negative.
        last = 2**63 if k.dtype == np.uint64 else first + int(np.max(k, initial=0)) * int(self.step)
        unsigned = first >= 0 and last >= 2**63
        # Two's complement: sums modulo 2^64 are right whatever the signs.
        start = np.uint64(first % 2**64)
        sums = start + k.astype(np.uint64) * np.uint64(self.step)
        return sums if unsigned else sums.astype(np.int64)

    def points(self, k: Places) -> Numbers:
        """Returns the values at k as floats: decimals as literals are read, others as they were."""
        found: Numbers = _shifted(self.origin + k.astype(np.float64) * self.step, -self.exponent)
        return self._as_seen(found) if self.seen else found

    def _as_seen(self, x: Numbers) -> Numbers:
        listed = np.array(self.seen)
        after = np.clip(np.searchsorted(listed, x), 1, len(listed) - 1)
        near = np.where(x - listed[after - 1] < self.width / 2, listed[after - 1], listed[after])
        return np.where(np.abs(near - x) <= self.tolerance(x), near, x)

    def tolerance(self, x: Numbers) -> Numbers:
        """Returns by how much each value may miss its grid point."""
        found: Numbers = self.precision * np.maximum(np.abs(x), self.largest)
        return found

    def _encode_integers(self, whole: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
        above, count, rest = self._steps(whole)
        k = np.minimum(count, np.uint64(FARTHEST)).astype(np.int64)
        return np.where(above, k, -k), (rest == 0) & (count <= np.uint64(FARTHEST))

    def _steps(self, whole: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[Any]]:
        """Returns whether integers are above the origin, how many steps away, and what is left."""
        first = int(self.origin)
        above = at_least(whole, first)
        # Differences modulo 2^64 are right, since the larger is the minuend.
        ahead = whole.astype(np.uint64) - np.uint64(first % 2**64)
        distance = np.where(above, ahead, np.uint64(0) - ahead)
        return above, *np.divmod(distance, np.uint64(self.step))

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it."""
        return asdict(self)


def find(values: NDArray[Any]) -> Grid | None:
    """Returns the coarsest even grid that holds every value, or None if chance could explain it.

    values: Finite floats, integers or times, at least one.
    """
    x = _distinct(integers(values))
    if x.dtype.kind in "iu":
        return _of_integers(x)
    precision = _precision(x)
    x = x.astype(np.float64, copy=False)
    found = _decimal(x, precision) or _measured(x, precision)
    return found if found is not None and _holds(found, x) else None


def _holds(grid: Grid, x: Numbers) -> bool:
    """Whether all values lie on the grid, and only rounding parts two at the same place."""
    k, on = grid.encode(x)
    return bool(on.all()) and bool((~_differ(x, grid.precision) | (np.diff(k) > 0)).all())


def _differ(x: Numbers, precision: float) -> NDArray[np.bool_]:
    """Whether sorted values differ from the one before by more than rounding, shape (N − 1,)."""
    with np.errstate(over="ignore"):
        found: NDArray[np.bool_] = np.diff(x) > precision * np.abs(x[1:])
    return found


def place(listed: NDArray[Any], values: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
    """Returns which listed value, ascending, is nearest to each, and whether it is that value.

    Integers and times must agree; floats may miss by the rounding of their own magnitude.
    """
    listed, values = integers(listed), integers(values)
    after = np.clip(np.searchsorted(listed, values), 1, max(len(listed) - 1, 1))
    if listed.dtype.kind in "iu" and values.dtype.kind in "iu":
        upper = np.minimum(after, len(listed) - 1)
        below, above, whole = (
            v.astype(np.uint64) for v in (listed[after - 1], listed[upper], values)
        )
        # Differences modulo 2^64 are right where the larger is the minuend.
        nearer = (values > listed[after - 1]) & (above - whole < whole - below)
        k = np.where((values >= listed[upper]) | nearer, upper, after - 1)
        return k, listed[k] == values
    x, points = values.astype(np.float64), listed.astype(np.float64)
    upper = np.minimum(after, len(points) - 1)
    k = np.where(np.abs(points[upper] - x) < np.abs(points[after - 1] - x), upper, after - 1)
    precision = max(_precision(listed), _precision(values))
    return k, np.abs(points[k] - x) <= precision * np.abs(x)


def _precision(values: NDArray[Any]) -> float:
    """Returns the tolerance of a type relative to the magnitude."""
    if values.dtype.kind != "f":
        return 0.0
    return ULPS[values.dtype.name] * float(np.finfo(values.dtype).eps)


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    return values if bool((values[1:] > values[:-1]).all()) else np.unique(values)


def integers(values: NDArray[Any]) -> NDArray[Any]:
    """Returns times and durations as int64 in their own unit, and anything else as it is."""
    return values.astype(np.int64) if values.dtype.kind in "mM" else values


def unit(values: NDArray[Any]) -> str | None:
    """Returns the unit of times and durations, such as "ns", and None for anything else."""
    return np.datetime_data(values.dtype)[0] if values.dtype.kind in "mM" else None


def _of_integers(distinct: NDArray[Any]) -> Grid:
    first = int(distinct[0])
    gaps = distinct[1:].astype(np.uint64) - distinct[:-1].astype(np.uint64)
    step = int(np.gcd.reduce(gaps)) if len(gaps) else 1
    largest = float(max(abs(first), abs(int(distinct[-1]))))
    return Grid(first, step, largest=largest)


def at_least(whole: NDArray[Any], bound: int) -> NDArray[np.bool_]:
    """Whether integers of any type are at least a Python integer, which NumPy may not hold."""
    ends = np.iinfo(whole.dtype)
    if bound > ends.max:
        return np.zeros(whole.shape, bool)
    return whole >= max(bound, ends.min)


def _decimal(x: Numbers, precision: float) -> Grid | None:
    """Returns the grid of decimals x, sorted and distinct, with the fewest digits."""
    largest = float(np.abs(x[[0, -1]]).max())
    if largest == 0:
        return None
    tolerance, top = precision * largest, math.floor(math.log10(largest))
    few = x[:: max(1, len(x) // 32)]
    for exponent in range(-top, -top + 16):
        if _doubt(tolerance, exponent) * len(x) < SURE:
            return None
        if _has_digits(few, exponent, tolerance) and _has_digits(x, exponent, tolerance):
            return _from_decimals(x, exponent, precision, largest)
    return None


def _doubt(tolerance: float, exponent: int) -> float:
    """Returns −log P that a number lies within the tolerance of a decimal by chance."""
    return -math.log(2) - math.log(max(tolerance, 5e-324)) - exponent * math.log(10)


def _has_digits(x: Numbers, exponent: int, tolerance: float) -> bool:
    rounded = _shifted(np.rint(_shifted(x, exponent)), -exponent)
    return bool((np.abs(rounded - x) <= tolerance).all())


def _from_decimals(x: Numbers, exponent: int, precision: float, largest: float) -> Grid | None:
    whole = np.rint(_shifted(x, exponent)).astype(np.int64)
    step = int(np.gcd.reduce(np.diff(whole))) if len(x) > 1 else 1
    return Grid(int(whole[0]), step, exponent, precision, largest) if step else None


def _measured(x: Numbers, precision: float) -> Grid | None:
    """Returns the grid of numbers that are no short decimals, as z-scores of counts are.

    Euclid's algorithm on the gaps finds a step; least squares over ever more values refines it.
    """
    if len(x) < 4:
        return None
    largest = float(np.abs(x[[0, -1]]).max())
    # A power of two brings any magnitude near 1 without rounding.
    power = -math.frexp(largest)[1]
    tolerance = precision * math.ldexp(largest, power)
    y = np.ldexp(x[np.append(True, _differ(x, precision))], power)
    step = steps.common(y - y[0], tolerance) if len(y) > 3 else None
    if step is None:
        return None
    k = np.rint((y - y[0]) / step)
    odds = (len(y) - 2) * math.log(step / (2 * tolerance)) - 2 * math.log(k[-1])
    origin, step = steps.line(k, y)
    back = float(np.ldexp(step, -power))
    if odds < SURE or back == 0:
        return None
    return Grid(float(np.ldexp(origin, -power)), back, 0, precision, largest)


def _shifted(x: Any, exponent: int) -> Any:
    """Returns x · 10^exponent, correctly rounded where powers of ten are exact, up to 10^22."""
    with np.errstate(over="ignore"):
        for part in _pieces(abs(exponent)):
            x = x * 10.0**part if exponent > 0 else x / 10.0**part
    return x


def _pieces(exponent: int) -> list[int]:
    """Splits an exponent into parts whose powers of ten are finite, one part if it can be."""
    return [min(300, exponent - start) for start in range(0, exponent, 300)]
