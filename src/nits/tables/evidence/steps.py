"""The step that numbers are multiples of, up to rounding: Euclid's algorithm, least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

DIFFERENCES = 4
"""Times that differences of gaps are taken, each of which doubles their error."""


def common(y: Numbers, tolerance: float) -> float | None:
    """Returns the greatest step that divides every y ≥ 0 up to rounding, None if it is tiny.

    A step known from values up to k steps away is known to about tolerance / k, so it counts steps
    safely only some way farther; each round of least squares extends that reach.
    """
    step, known = _euclid(_small(np.diff(y), tolerance), 2**DIFFERENCES * tolerance), 1.0
    for _ in range(64):
        if step is None or step < 16 * tolerance:
            return None
        reach = max(known * step / (32 * tolerance), known + 1)
        near = y[: max(2, int(np.searchsorted(y, (reach + 0.5) * step)))]
        k = np.rint(near / step)
        rest = np.abs(near - k * step)
        bad = rest > 4 * tolerance * (1 + k / known)
        if bad.any():
            step, known = _euclid(np.array([step, rest[bad][0]]), tolerance), 1.0
            continue
        step, farthest = float(k @ near / (k @ k)), float(k[-1])
        if len(near) == len(y):
            return step
        known = max(farthest, 2 * known)
    return None


def line(k: Numbers, y: Numbers) -> tuple[float, float]:
    """Returns origin and step of the line through the points (k, y), by least squares."""
    across, height = k - k.mean(), y - y.mean()
    step = float(across @ height / (across @ across))
    return float(y.mean() - step * k.mean()), step


def _small(gaps: Numbers, tolerance: float) -> Numbers:
    """Returns small multiples of the step that gaps are multiples of, by differences."""
    parts = gaps
    for _ in range(DIFFERENCES):
        parts = _least(parts, 512)
        closer = np.diff(parts)
        parts = np.concatenate([parts, closer[closer > 2**DIFFERENCES * 4 * tolerance]])
    return _least(parts, 256)


def _least(parts: Numbers, count: int) -> Numbers:
    """Returns the least numbers in order, without sorting all."""
    return np.sort(np.partition(parts, count)[:count] if len(parts) > count else parts)


def _euclid(parts: Numbers, tolerance: float) -> float | None:
    """Returns the greatest common divisor of numbers that are known to a tolerance.

    A remainder of k steps is known as well as k times the step is; where that tells nothing, it is
    not looked at.
    """
    step, error = float(parts.min()), tolerance
    while step > 16 * error:
        times = np.rint(parts / step)
        rest, known = np.abs(parts - times * step), 2 * (tolerance + times * error)
        large = np.flatnonzero((rest > known) & (known < step / 4))
        if not len(large):
            return step
        least = large[np.argmin(rest[large])]
        step, error = float(rest[least]), float(known[least]) / 2
    return None
