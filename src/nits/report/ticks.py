"""Where an axis has its ticks, and what they say: numbers on any scale, times and durations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nits.report import words
from nits.tables.columns.plainly import per_second

Numbers = NDArray[np.float64]
Place = Callable[[Numbers], Numbers]

LEAST_DIGITS = 4

APART = 0.17
"""The least distance of two ticks, as a share of the axis."""

STEPS = {"Y": (1, 2, 5, 10, 20, 50, 100), "M": (1, 3, 6), "D": (1, 2, 7, 14), "h": (1, 3, 6, 12)}
STEPS |= {"m": (1, 5, 15, 30), "s": (1, 5, 15, 30)}
"""Calendar steps, by the unit of NumPy."""

MOST_TIMES = 6

NARROWEST, WIDEST = 1e-290, 1e300
"""Ranges with round numbers between their ends."""


class Tick(NamedTuple):
    """A place on an axis from 0 to 1, and its label."""

    place: float
    label: str


def of_numbers(low: float, high: float, place: Place) -> list[Tick]:
    """Returns ticks at round numbers between two ends of an axis, not too close to one another.

    place: Maps values to places from 0 to 1.
    """
    if not NARROWEST < high - low < WIDEST:  # round numbers are beyond what floats can step through
        return [Tick(0.0, words.number(low)), Tick(1.0, words.number(high))]
    bent = not 0.35 < float(place(np.array([(low + high) / 2]))[0]) < 0.65
    every = _round_numbers(low, high, bent=bent)
    found: list[tuple[float, float]] = []
    for group in every:
        with np.errstate(divide="ignore", invalid="ignore"):
            at = place(np.array(group, np.float64))
        for value, where in zip(group, at.tolist(), strict=True):
            inside = math.isfinite(where) and -1e-9 <= where <= 1 + 1e-9
            if inside and all(abs(where - other) >= APART for _, other in found):
                found.append((value, where))
    return [Tick(where, words.number(value, _digits(found))) for value, where in sorted(found)]


def _digits(found: list[tuple[float, float]]) -> int:
    """Returns how many digits tell the values of ticks apart."""
    values = np.array(sorted(value for value, _ in found))
    steps = np.diff(values)
    if not len(steps) or not steps.min() > 0:
        return LEAST_DIGITS
    return max(LEAST_DIGITS, 2 + math.floor(math.log10(np.abs(values).max() / steps.min())))


def _round_numbers(low: float, high: float, *, bent: bool) -> list[list[float]]:
    """Returns groups of round numbers, those that an axis should rather have first.

    bent: Whether the axis is far from linear, so that powers of ten are wanted.
    """
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-300)))
    groups = [[0.0]] if low <= 0 <= high else []
    even = next(
        s for s in (step / 5, step / 2, step, 2 * step, 5 * step) if (high - low) / s < 1 / APART
    )
    evenly = [k * even for k in range(math.ceil(low / even), math.floor(high / even) + 1)]
    powers: list[list[float]] = []
    if bent:
        top = math.floor(math.log10(max(abs(low), abs(high))))
        for factor in (1.0, 3.0):
            sizes = [factor * 10.0 ** (top - k) for k in range(8)]
            every = [sign * size for size in sizes for sign in (1, -1)]
            powers.append([value for value in every if low <= value <= high])
    return [*groups, *powers, evenly]


def of_times(low: int, high: int, unit: str, place: Place) -> list[Tick]:
    """Returns ticks of a calendar between two times, in ticks of a unit such as "M8[ns]"."""
    # NumPy would turn the first nanoseconds of all into seconds after the last.
    second = per_second(unit)
    ends = np.array([low // second, high // second], "M8[s]")
    for name, step in _calendar_steps():
        first, last = ends.astype(f"M8[{name}]").astype(np.int64).tolist()
        if (last - first) / step <= MOST_TIMES:
            steps = np.arange(-(-first // step) * step, last + 1, step)
            if name == "D" and step % 7 == 0:
                steps = steps + 4  # Mondays
            times = steps.astype(f"M8[{name}]")
            at = place(times.astype(unit).astype(np.int64))
            spelled = [_spelled(time, name) for time in times]
            pairs = zip(at.tolist(), spelled, strict=True)
            return [Tick(where, label) for where, label in pairs if 0 <= where <= 1]
    return []


def _calendar_steps() -> list[tuple[str, int]]:
    """Returns steps from seconds to centuries."""
    return [(name, step) for name in reversed(STEPS) for step in STEPS[name]]


def _spelled(time: np.datetime64, unit: str) -> str:
    text = str(time.astype("M8[s]"))
    return {"Y": text[:4], "M": text[:7], "D": text[5:10]}.get(unit, text[5:16].replace("T", " "))


def of_durations(low: int, high: int, unit: str, place: Place) -> list[Tick]:
    """Returns ticks at round numbers of days, hours, minutes or seconds."""
    second = float(per_second(unit))
    size = max(abs(low), abs(high)) / second
    name, width = next(
        ((n, w) for n, w in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)) if size >= 2 * w),
        ("s", 1.0),
    )
    factor = width * second
    found = of_numbers(low / factor, high / factor, lambda x: place(x * factor))
    return [Tick(where, f"{label} {name}") for where, label in found]
