"""The scales on which a column's values could be modelled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nits.tables.evidence.scales import FARTHEST, LARGEST, Asinh, Linear, Log, Logit, Numbers, Scale
from nits.tables.evidence.smooth import quantiles

CONCENTRATED = 100
"""Ratio of the spread to the twentieth nearest the median; 16 for a Gaussian, 20 for a Cauchy."""


def spread(x: Numbers, counts: Numbers) -> float:
    """Returns a robust spread of sorted values: the deviation of a Gaussian as wide in the middle.

    Where half of the values agree, wider parts are taken.
    """
    for tail, deviations in ((0.25, 1.349), (0.1, 2.563), (0.01, 4.653), (0.0, 8.0)):
        low, high = quantiles(x, counts, np.array([tail, 1 - tail]))
        if (width := float(high / 2 / deviations - low / 2 / deviations)) > 0:
            return min(2 * width, LARGEST)
    return max(abs(float(x[0])), 1e-300)


def fitted(
    x: Numbers, counts: Numbers, ends: tuple[float, float], room: Sequence[float] = (0.0, 0.0)
) -> list[Scale]:
    """Returns the scales on which values could be modelled, the simplest first.

    x, counts: Distinct values, ascending, and how often each occurs.
    ends: Of what must have a place on the scale: all values, and the cells around them.
    room: How far beyond each end a logarithm must start at least, unless it starts at 0.

    A logarithm starts at 0 if all values lie above it, or as far beyond the extreme value as one
    in a hundred lies inside; its mirror image serves columns skewed to the left. Values of both
    signs and of many magnitudes have an inverse hyperbolic sine with a finer unit besides.
    """
    low, high = ends
    q = quantiles(x, counts, np.array([0.05, 0.5, 0.95]))
    middle, sign = float(q[1]), 1 if q[2] / 2 - q[1] / 2 >= q[1] / 2 - q[0] / 2 else -1
    offsets = [0.0] if (low if sign > 0 else -high) > 0 else []
    edge = _beyond(x, counts, sign)
    if edge > 0:
        offsets.append(low - max(edge, room[0]) if sign > 0 else high + max(edge, room[1]))
    both = np.array(ends)
    possible = [o for o in offsets if math.isfinite(o) and _holds(Log(o, sign, 0.0, 1.0), both)]
    found: list[Scale] = [Linear(middle, spread(x, counts))]
    found += [_log(x, counts, offset, sign) for offset in possible]
    found.append(Asinh(middle, spread(x, counts), 1.0))
    found += _finer(x, counts, middle)
    if low > 0 and high < 1:
        t = Logit(0.0, 1.0).to(x)
        found.append(Logit(float(quantiles(t, counts, np.array([0.5]))[0]), spread(t, counts)))
    return [scale for scale in found if _holds(scale, both)]


def _holds(scale: Scale, ends: Numbers) -> bool:
    """Whether a scale has places for both ends, so near that a step of its spread still shows.

    Logarithms that all agree to nine digits have lost what sets the values apart.
    """
    if isinstance(scale, Log | Logit) and scale.width < 1e-9 * abs(scale.shift):
        return False
    return bool((np.abs(scale.to(ends)) < FARTHEST).all())


def _finer(x: Numbers, counts: Numbers, middle: float) -> list[Scale]:
    """Returns a scale that tells apart all but one value in twenty of those near the middle."""
    with np.errstate(over="ignore"):
        distance = np.abs(x - middle)
    order = np.argsort(distance, kind="stable")
    unit = float(quantiles(distance[order], counts[order], np.array([0.05]))[0])
    if not 0 < unit < spread(x, counts) / CONCENTRATED:
        return []
    return [Asinh(middle, unit, spread(Asinh(middle, unit, 1.0).to(x), counts))]


def _beyond(x: Numbers, counts: Numbers, sign: int) -> float:
    """Returns how far one value in a hundred, or in ten, or two, lies inside the extreme one."""
    for share in (0.01, 0.1, 0.5):
        inner = quantiles(x, counts, np.array([share if sign > 0 else 1 - share]))[0]
        edge = float(inner - x[0]) if sign > 0 else float(x[-1] - inner)
        if 0 < edge < math.inf:
            return edge
    return 0.0


def _log(x: Numbers, counts: Numbers, offset: float, sign: int) -> Log:
    t = Log(offset, sign, 0.0, 1.0).to(x)
    return Log(
        offset, sign, sign * float(quantiles(t, counts, np.array([0.5]))[0]), spread(t, counts)
    )
