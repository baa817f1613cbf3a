"""A column seen on one scale: as points with a density, or as cells of a grid with masses.

Both fit the smooth model to counts of the distinct values, and say how probable each value is at
the column's resolution, so that points and cells can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import smooth, tails
from nits.tables.evidence.scales import Scale
from nits.tables.evidence.smooth import Mixture, Smooth
from nits.tables.evidence.tails import Tail

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Places = NDArray[np.intp]

NARROW = 0.02
"""Half a cell in scales of a logistic below which its mass is width times density, to 1e-4 nats."""

FARTHEST = math.log(np.finfo(np.float64).max) - math.log(5e-324)
"""Nats from the smallest to the largest float: what one value costs at most in a comparison."""


class View(Protocol):
    """The distinct values on a scale."""

    def fit(self, counts: Counts, kept: NDArray[np.bool_]) -> Smooth:
        """Returns the smooth model of the kept values, on the range of all that occur."""

    def log_prob(self, model: Smooth, at: Places) -> Numbers:
        """Returns the log-probability, at the column's resolution, of the values at places."""


@dataclass(frozen=True)
class Points:
    """Values at points u with a density.

    start, end: The ends of the interval that is recorded as the value.
    log_width: The logarithm of its width, known also where the ends differ by less than rounding.
    """

    u: Numbers
    start: Numbers
    end: Numbers
    log_width: Numbers

    @classmethod
    def on(cls, scale: Scale, x: Numbers, resolution: Numbers) -> Points:
        """Returns the values x on a scale."""
        with np.errstate(over="ignore"):
            start, end = scale.to(x - resolution / 2), scale.to(x + resolution / 2)
        return cls(scale.to(x), start, end, scale.log_slope(x) + np.log(resolution))

    def fit(self, counts: Counts, kept: NDArray[np.bool_]) -> Smooth:
        """Returns the smooth model of the kept values, on the range of all that occur."""
        u, c = self.u[kept], counts[kept].astype(np.float64)
        mixture = Mixture.at_quantiles(smooth.quantiles(u, c, smooth.levels()))
        ends = np.flatnonzero(counts)[[0, -1]]
        low, high = self.u[ends].tolist()
        if low == high:
            low, high = self._around(int(ends[0]))
        share = tails.share(int(counts.sum()))
        lower = Tail(share, tails.rate(u - u[0], c))
        upper = Tail(share, tails.rate(u[-1] - u[::-1], c[::-1]))
        return Smooth(mixture, low, high, lower, upper)

    def _around(self, at: int) -> tuple[float, float]:
        """Returns the body of one value alone: what is recorded as it, as far as floats allow."""
        u, half = float(self.u[at]), math.exp(float(self.log_width[at])) / 2
        below, above = math.nextafter(u, -math.inf), math.nextafter(u, math.inf)
        return min(u - half, below), max(u + half, above)

    def log_prob(self, model: Smooth, at: Places) -> Numbers:
        """Returns log density + log resolution, or log masses where the density varies."""
        u, log_width = self.u[at], self.log_width[at]
        start, end = self.start[at], self.end[at]
        wide = (log_width > _log_narrow(model)) & (end > start)
        found = np.empty(len(at))
        found[~wide] = model.log_density(u[~wide]) + log_width[~wide]
        found[wide] = model.log_mass(start[wide], end[wide])
        return found


@dataclass(frozen=True)
class Cells:
    """Values that are the cells [start, end] of the scale."""

    start: Numbers
    end: Numbers

    @classmethod
    def on(cls, scale: Scale, x: Numbers, step: float) -> Cells:
        """Returns the cells of width step around the values x on a scale."""
        return cls(scale.to(x - step / 2), scale.to(x + step / 2))

    def fit(self, counts: Counts, kept: NDArray[np.bool_]) -> Smooth:
        """Returns the smooth model of the kept values, on the cells of all that occur."""
        a, b, c = self.start[kept], self.end[kept], counts[kept].astype(np.float64)
        mixture = Mixture.at_quantiles(smooth.cell_quantiles(a, b, c, smooth.levels()))
        ends = np.flatnonzero(counts)[[0, -1]]
        share = tails.share(int(counts.sum()))
        lower = Tail(share, tails.rate(a - a[0], c, float(b[0] - a[0])))
        upper = Tail(share, tails.rate(b[-1] - b[::-1], c[::-1], float(b[-1] - a[-1])))
        return Smooth(mixture, float(self.start[ends[0]]), float(self.end[ends[1]]), lower, upper)

    def log_prob(self, model: Smooth, at: Places) -> Numbers:
        """Returns log masses."""
        a, b = self.start[at], self.end[at]
        wide = b - a > np.exp(_log_narrow(model))
        found = np.empty(len(at))
        found[wide] = model.log_mass(a[wide], b[wide])
        a, b = a[~wide], b[~wide]
        # A cell whose ends floats cannot tell apart has no mass, however dense it is there.
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = model.log_density((a + b) / 2) + np.log(b - a)
        found[~wide] = np.where(b > a, mass, -np.inf)
        return found


def _log_narrow(model: Smooth) -> float:
    """Returns the logarithm of the width below which the density is as good as straight."""
    return math.log(2 * NARROW * float(model.mixture.scales.min()))
