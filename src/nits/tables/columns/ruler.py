"""Where the values of a numeric column lie: on a scale, between ends, with tails beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns.column import BODY, LOWER, UPPER, Flags, Numbers
from nits.tables.evidence import grids, scales, tails
from nits.tables.evidence.grids import Grid
from nits.tables.evidence.resolution import Resolution
from nits.tables.evidence.scales import Scale
from nits.tables.evidence.tails import Tail

Limit = int | float

FINE = 1e-10
"""Width of a cell, as a share of the value, below which rounding spoils its mass."""


NEXT_TO_ONE = 1 - 2.0**-53
"""The greatest probability at which a tail without a limit has a value."""


@dataclass(frozen=True)
class Ruler:
    """The place of values on a column's scale, and the laws of what lies beyond the training rows.

    base: What is taken off integers and times before they become floats.
    scale: The map from the rest to the scale of the model.
    ends: Where on the scale the body ends and the tails begin.
    lower, upper: What lies beyond; a share of 0 where there is a limit.
    least, greatest: The ends of the training values.
    low, high: Limits that were found or given, infinite where there is none.
    hard: Whether the user gave the limits, so that nothing beyond them is possible.
    resolution: How finely values are recorded.
    grid: The even grid on which they lie, if any.
    """

    base: int
    scale: Scale
    ends: tuple[float, float]
    lower: Tail
    upper: Tail
    least: Limit
    greatest: Limit
    low: Limit
    high: Limit
    hard: bool
    resolution: Resolution
    grid: Grid | None = None

    def numbers(self, plain: NDArray[Any]) -> Numbers:
        """Returns values less the base as floats; integers lose no digit before."""
        if self.base == 0 or plain.dtype.kind not in "iu":
            return np.asarray(plain, np.float64) - self.base
        above = grids.at_least(plain, self.base)
        # Modulo 2^64: the difference is right where the larger is the minuend.
        ahead = plain.astype(np.uint64) - np.uint64(self.base % 2**64)
        return np.where(above, ahead.astype(np.float64), -(-ahead).astype(np.float64))

    def side(self, plain: NDArray[Any]) -> NDArray[np.int8]:
        """Returns whether values lie below the least, between the ends or above the greatest."""
        below, above = ~at_least(plain, self.least), ~at_most(plain, self.greatest)
        return np.where(below, LOWER, np.where(above, UPPER, BODY)).astype(np.int8)

    def ruled_out(self, plain: NDArray[Any]) -> Flags:
        """Returns which values lie beyond limits that the user gave."""
        if not self.hard:
            return np.zeros(len(plain), bool)
        return ~(at_least(plain, self.low) & at_most(plain, self.high))

    def log_density(self, x: Numbers, side: int) -> Numbers:
        """Returns log-densities of values less the base, given that they lie beyond an end."""
        law, distance = self.law(side).given(), self.distance(x, side)
        with np.errstate(invalid="ignore"):
            found = law.log_density(distance) + self.scale.log_slope(x)
        return np.where(np.isfinite(found), found, -np.inf)

    def log_mass(self, x: Numbers, side: int, width: float | None = None) -> Numbers:
        """Returns log-probabilities of recorded values, less the base, given that they lie there.

        width: Of their cells; by default as finely as values are recorded.
        """
        whole = self.resolution.at(x) if width is None else np.full(len(x), width)
        half = whole / 2
        near, far = (self.distance(x + sign * side * half, side) for sign in (-1, 1))
        # A cell about the end of the scale has all that lies there.
        far = np.where(np.isnan(far), np.inf, far)
        with np.errstate(invalid="ignore"):
            found = self.law(side).given().log_mass(np.maximum(near, 0.0), far)
        # The ends of a cell as fine as floats are hardly two: its mass is density times width.
        density = self.log_density(x, side)
        fine = ((near == far) | (whole < FINE * np.abs(x))) & np.isfinite(density)
        found = np.where(fine, density + np.log(whole), found)
        return np.where(np.isnan(found), -np.inf, found)

    def passed(self, x: Numbers, side: int, discrete: bool) -> Numbers:
        """Returns the share of a tail between its end and values less the base, cells included."""
        half = self.resolution.at(x) / 2 if discrete else 0.0
        distance = np.clip(self.distance(x + half, side), 0.0, self.law(side).room)
        law = self.law(side)
        found: Numbers = np.expm1(-law.rate * distance) / np.expm1(-law.rate * law.room)
        return found

    def drawn(self, side: int, u: Numbers) -> NDArray[Any]:
        """Returns recorded values beyond an end, at probabilities u of what lies there."""
        law, u = self.law(side), np.minimum(u, NEXT_TO_ONE)
        distance = -np.log1p(u * np.expm1(-law.rate * law.room)) / law.rate
        end = self.ends[0] if side == LOWER else self.ends[1]
        x = self.scale.back(end + side * distance)
        extreme = float(self.numbers(np.array([self.least if side == LOWER else self.greatest]))[0])
        step = float(self.resolution.at(np.array([extreme]))[0])
        next_ = extreme + side * step
        x = np.minimum(x, next_) if side == LOWER else np.maximum(x, next_)
        return self.recorded(x, self.low, self.high)

    def body(self, x: Numbers) -> NDArray[Any]:
        """Returns recorded values between the ends."""
        return self.recorded(x, self.least, self.greatest)

    def recorded(self, x: Numbers, low: Limit, high: Limit) -> NDArray[Any]:
        """Returns values less the base as the table would have them, between low and high."""
        if self.grid is not None:
            return self._on_grid(self.grid, x, low, high)
        if self.base or isinstance(self.least, int):
            raise ValueError("integers and times must have a grid.")
        return np.clip(self.resolution.rounded(x), low, high)

    def _on_grid(self, grid: Grid, x: Numbers, low: Limit, high: Limit) -> NDArray[Any]:
        if not grid.exact:
            nearest = grid.encode(self.resolution.rounded(x))[0]
            return np.clip(grid.points(nearest), low, high)
        start, step = int(grid.origin) - self.base, int(grid.step)
        k = np.rint((x - start) / step)
        first = -math.inf if math.isinf(low) else -((int(grid.origin) - int(low)) // step)
        last = math.inf if math.isinf(high) else (int(high) - int(grid.origin)) // step
        return grid.decode(_whole(k, first, last))

    def law(self, side: int) -> Tail:
        """Returns the law of what lies beyond an end."""
        return self.lower if side == LOWER else self.upper

    def distance(self, x: Numbers, side: int) -> Numbers:
        """Returns how far values less the base lie beyond an end, in units of the scale."""
        u = self.scale.to(x)
        return self.ends[0] - u if side == LOWER else u - self.ends[1]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it; what is infinite is null."""
        return {
            "base": self.base,
            "scale": self.scale.to_dict(),
            "ends": [_finite(end) for end in self.ends],
            "lower": self.lower.to_dict(),
            "upper": self.upper.to_dict(),
            **{name: _finite(getattr(self, name)) for name in ("least", "greatest", "low", "high")},
            "hard": self.hard,
            "resolution": self.resolution.to_dict(),
            "grid": None if self.grid is None else self.grid.to_dict(),
        }


def from_dict(record: dict[str, Any]) -> Ruler:
    """Returns the ruler that `Ruler.to_dict` described."""
    low, high = record["low"], record["high"]
    ends = record["ends"]
    return Ruler(
        base=record["base"],
        scale=scales.from_dict(record["scale"]),
        ends=(_or(ends[0], -math.inf), _or(ends[1], math.inf)),
        lower=tails.from_dict(record["lower"]),
        upper=tails.from_dict(record["upper"]),
        least=_or(record["least"], -math.inf),
        greatest=_or(record["greatest"], math.inf),
        low=_or(low, -math.inf),
        high=_or(high, math.inf),
        hard=record["hard"],
        resolution=Resolution(**record["resolution"]),
        grid=None if record["grid"] is None else Grid(**record["grid"]),
    )


def at_least(plain: NDArray[Any], bound: Limit) -> Flags:
    """Returns whether values are at least a bound, which their type may not hold."""
    if plain.dtype.kind not in "iu" or math.isinf(bound):
        return np.asarray(plain >= bound)
    return grids.at_least(plain, math.ceil(bound))


def at_most(plain: NDArray[Any], bound: Limit) -> Flags:
    """Returns whether values are at most a bound, which their type may not hold."""
    if plain.dtype.kind not in "iu" or math.isinf(bound):
        return np.asarray(plain <= bound)
    return ~grids.at_least(plain, math.floor(bound) + 1)


def _whole(k: Numbers, first: float, last: float) -> NDArray[Any]:
    """Returns integers between the ends, exactly also where floats have no room for them.

    They are modulo 2^64, as decoding wants them, if int64 does not hold the ends of a wide range.
    """
    low, high = (
        int(min(max(end, -grids.FARTHEST), grids.FARTHEST)) if math.isinf(end) else int(end)
        for end in (first, last)
    )
    inside = np.clip(k, max(low, -(2.0**63)), min(high, 2.0**64))
    size = np.where((k <= low) | (k >= high), 0.0, np.abs(inside)).astype(np.uint64)
    found = np.where(inside < 0, np.uint64(0) - size, size)
    found = np.where(k <= low, np.uint64(low % 2**64), found)
    found = np.where(k >= high, np.uint64(high % 2**64), found)
    return found if k.size and bool((k >= 2.0**63).any()) else found.astype(np.int64)


def _finite(value: Limit) -> Limit | None:
    return None if math.isinf(value) else value


def _or(value: Limit | None, other: float) -> Limit:
    return other if value is None else value
