"""Combs: points of an even grid that were blurred by less than the grid's step.

Between the teeth of such a comb there is nothing, so that a density has 1/share of the height that
it would have without gaps. Tables whose rounding was replaced by noise often have such columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence.grids import SURE
from nits.tables.evidence.scales import LARGEST, Combed, Linear, Scale

Numbers = NDArray[np.float64]

TINY = 1e-290
"""Ranges below this leave no room for steps."""

FEWEST_TEETH = 8

IRREGULAR = 0.1
"""By how much of a step the distances of teeth may miss its multiples."""

FEWEST_PLACES = 64
"""Floats in a tooth at least: fewer are rounding, not noise."""


class Comb(NamedTuple):
    """Teeth [origin + k · step, origin + (k + share) · step]."""

    origin: float
    step: float
    share: float

    def combed(self, scale: Scale) -> Combed:
        """Returns the scale of values whose gaps are closed before."""
        return Combed(scale, *self)

    def closed(self, x: Numbers) -> Numbers:
        """Returns values with the gaps closed."""
        return self.combed(Linear(0.0, 1.0)).closed(x)


def find(x: Numbers) -> Comb | None:
    """Returns the comb that holds all of the distinct values x, ascending, if there is one.

    By chance, n values leave a part γ of the step empty with probability n exp(−γ n) at most.
    """
    if not TINY < x[-1] / 2 - x[0] / 2 < LARGEST / 4:
        return None
    for step in _steps(x):
        if (found := _comb(x, step)) is not None:
            return found
    return None


def _steps(x: Numbers) -> Iterator[float]:
    """Yields distances of teeth, from the values after the widest gaps in the middle of x."""
    middle = x[len(x) // 10 : len(x) - len(x) // 10]
    gaps = np.diff(middle)
    count = FEWEST_TEETH
    while count <= len(gaps) // 4:
        widest = np.sort(np.argpartition(gaps, -count)[-count:])
        apart = np.diff(middle[widest + 1])
        near = apart[apart < 1.5 * apart.min()]
        times = np.rint(apart / np.median(near))
        step = float(apart.sum() / times.sum())
        if np.isfinite(step) and float(np.abs(apart / step - times).max()) < IRREGULAR:
            yield step
        count *= 2


def _comb(x: Numbers, step: float) -> Comb | None:
    """Returns the teeth of values at about this distance, if the gaps are no chance."""
    for _ in range(3):  # a better step tells teeth apart that are farther from each other
        origin, empty = _widest(x, step)
        k = np.floor((x - origin) / step)
        teeth, first, counts = np.unique(k, return_index=True, return_counts=True)
        if len(teeth) < FEWEST_TEETH:
            return None
        # The least of c values in a tooth lies about a c-th of it above where it begins.
        step, origin = (float(part) for part in np.polyfit(teeth, x[first], 1, w=counts))
        if not step > 0:
            return None
    origin, empty = _widest(x, step)
    if empty * len(x) < SURE + 2 * math.log(len(x)):
        return None
    slack = min((1 - empty) / len(x), empty / 4)
    share = 1 - empty + 2 * slack
    fine = np.spacing(np.abs(x[[0, -1]]).max().astype(np.float32 if _single(x) else np.float64))
    if share * step < FEWEST_PLACES * float(fine):
        return None
    return Comb(origin - slack * step, step, share)


def _widest(x: Numbers, step: float) -> tuple[float, float]:
    """Returns where teeth begin, and the widest part of the step that is empty."""
    start = float(x[len(x) // 2])
    phase = np.sort(((x - start) / step) % 1.0)
    gaps = np.diff(phase, append=phase[0] + 1.0)
    widest = int(np.argmax(gaps))
    return start + step * float(phase[(widest + 1) % len(x)]), float(gaps[widest])


def _single(x: Numbers) -> bool:
    """Whether values have the precision of float32."""
    with np.errstate(over="ignore"):
        return bool((x.astype(np.float32) == x).all())
