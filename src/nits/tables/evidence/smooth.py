"""The smooth model of one column: 32 logistics at its quantiles, as training starts from, in NumPy.

The body is truncated to [low, high], the range of the training values; beyond each end a fixed
tail law takes over (see `tails`). Points are on the column's scale. Everything is computed twice,
if need be: fast in plain numbers, and in logarithms where those underflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence.tails import NO_TAIL, Tail

Numbers = NDArray[np.float64]

UNITS = 32
"""Logistics in the mixture: the units of a table's PNN."""

SMOOTHING = 1.5
"""Width of a logistic in gaps between the centres, as in `nits.pnn.initial`."""

TILE = 512
"""Points times all logistics that fit into the cache."""

TINY = 1e-280
"""Sums below this are taken again in logarithms."""


@dataclass(frozen=True)
class Mixture:
    """The mean of logistic distributions with these centres and scales, shapes (h,)."""

    centres: Numbers
    scales: Numbers

    @classmethod
    def at_quantiles(cls, centres: Numbers) -> Mixture:
        """Returns logistics at the quantiles (i + ½)/h, as wide as the gaps around them.

        A logistic of scale s has density 1/(4 s) at its centre, so s = gap/4 has the data's
        density.
        """
        gaps = np.diff(centres)
        around = np.concatenate([gaps[:1], (gaps[1:] + gaps[:-1]) / 2, gaps[-1:]])
        # Ties get a sliver of the range instead of zero.
        span = max(float(centres[-1] - centres[0]), 1e-3)
        scales = SMOOTHING * np.maximum(around, 1e-2 * span / len(centres)) / 4
        return cls(centres, np.clip(scales, np.exp(-19.0), np.exp(19.0)))

    def log_density(self, u: Numbers) -> Numbers:
        """Returns log F′(u)."""
        u = np.asarray(u, np.float64)
        return _tiled(self._log_density, u)

    def log_mass(self, start: Numbers, end: Numbers) -> Numbers:
        """Returns log(F(end) − F(start)) for start ≤ end, to full relative precision."""
        return _tiled(self._log_mass, *np.broadcast_arrays(start, end))

    def cdf(self, u: Numbers) -> Numbers:
        """Returns F(u)."""
        return np.exp(self.log_mass(np.full_like(u, -np.inf), u))

    def _log_density(self, u: Numbers) -> Numbers:
        # e/(1 + e)² with e = exp(−|z|) is the logistic density.
        with np.errstate(over="ignore"):
            z = -np.abs(u[:, None] - self.centres) / self.scales
        e = np.exp(z)
        total = (e / (1 + e) ** 2) @ (1 / self.scales)
        with np.errstate(divide="ignore"):
            found: Numbers = np.log(total)
        if (low := total < TINY).any():
            parts = z[low] - 2 * np.log1p(e[low]) - np.log(self.scales)
            found[low] = np.logaddexp.reduce(parts, axis=1)
        found -= np.log(len(self.centres))
        return found

    def _log_mass(self, start: Numbers, end: Numbers) -> Numbers:
        # σ(z + d) − σ(z − d) = e (1 − q²) / ((q + e)(1 + q e)) with e = exp(−|z|), q = exp(−d).
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            half = (end - start)[:, None] / (2 * self.scales)
            z = -np.abs((start + end)[:, None] / 2 - self.centres) / self.scales
            e, q = np.exp(z), np.exp(-half)
            total = (e * -np.expm1(-2 * half) / ((q + e) * (1 + q * e))).sum(1)
            found: Numbers = np.log(total)
        if (low := ~(total >= TINY)).any():
            found[low] = self._log_mass_in_logs(start[low], end[low])
        found -= np.log(len(self.centres))
        return found

    def _log_mass_in_logs(self, start: Numbers, end: Numbers) -> Numbers:
        # σ(t) − σ(s) = σ(t) σ(−s) (1 − exp(s − t)): products of positives, also for infinite ends.
        with np.errstate(divide="ignore", over="ignore"):
            s = (start[:, None] - self.centres) / self.scales
            t = (end[:, None] - self.centres) / self.scales
            width = np.log(-np.expm1(-(end - start)[:, None] / self.scales))
        parts = width - np.logaddexp(0.0, -t) - np.logaddexp(0.0, s)
        found: Numbers = np.logaddexp.reduce(parts, axis=1)
        return found


@dataclass(frozen=True)
class Smooth:
    """A mixture truncated to [low, high], with a tail beyond each end.

    share: What of the mass the body has; the tails have the rest.
    """

    mixture: Mixture
    low: float
    high: float
    lower: Tail = NO_TAIL
    upper: Tail = NO_TAIL

    @property
    def share(self) -> float:
        """What the tails leave to the body."""
        return 1.0 - self.lower.share - self.upper.share

    def _log_body(self) -> float:
        """Returns the log of the body's share over the mass of the whole mixture on it."""
        ends = np.array([self.low]), np.array([self.high])
        return float(np.log(self.share) - self.mixture.log_mass(*ends)[0])

    def log_density(self, u: Numbers) -> Numbers:
        """Returns the logarithm of the density at u."""
        u = np.asarray(u, np.float64)
        found = np.full(u.shape, -np.inf)
        inside = (u >= self.low) & (u <= self.high)
        found[inside] = self.mixture.log_density(u[inside]) + self._log_body()
        for tail, distance in ((self.lower, self.low - u), (self.upper, u - self.high)):
            beyond = distance > 0
            found[beyond] = tail.log_density(distance[beyond])
        return found

    def log_mass(self, start: Numbers, end: Numbers) -> Numbers:
        """Returns the logarithm of the mass between start and end, shapes (N,), start ≤ end."""
        start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
        found = np.full(start.shape, -np.inf)
        a, b = np.clip(start, self.low, self.high), np.clip(end, self.low, self.high)
        inside = b > a
        found[inside] = self.mixture.log_mass(a[inside], b[inside]) + self._log_body()
        below, above = start < self.low, end > self.high
        for tail, part, near, far in (
            (self.lower, below, self.low - end[below], self.low - start[below]),
            (self.upper, above, start[above] - self.high, end[above] - self.high),
        ):
            found[part] = np.logaddexp(found[part], tail.log_mass(np.maximum(near, 0.0), far))
        return found

    def cdf(self, u: Numbers) -> Numbers:
        """Returns the mass up to u."""
        return np.exp(self.log_mass(np.full_like(u, -np.inf), u))


def _tiled(function: Callable[..., Numbers], *points: Numbers) -> Numbers:
    """Returns the function of points, shape (N,), taken in tiles that stay in the cache."""
    n = len(points[0])
    parts = [function(*(p[i : i + TILE] for p in points)) for i in range(0, n, TILE)]
    return np.concatenate(parts) if parts else np.empty(0)


def quantiles(points: Numbers, counts: Numbers, levels: Numbers) -> Numbers:
    """Returns quantiles of sorted points that occur so many times, as of the whole sample.

    Between two order statistics it goes in a straight line, as `nits.pnn.initial.quantiles` does.
    """
    ends = np.cumsum(counts)
    position = levels * (ends[-1] - 1)
    low = np.floor(position)
    first = points[np.searchsorted(ends, low, side="right")]
    next_ = points[np.searchsorted(ends, np.minimum(low + 1, ends[-1] - 1), side="right")]
    weight = position - low
    # Not first + weight · difference, which overflows between the largest floats.
    found: Numbers = first * (1 - weight) + next_ * weight
    return found


def cell_quantiles(start: Numbers, end: Numbers, counts: Numbers, levels: Numbers) -> Numbers:
    """Returns quantiles of values spread evenly over the cells [start, end] that they fell into."""
    ends = np.cumsum(counts)
    position = levels * ends[-1]
    at = np.minimum(np.searchsorted(ends, position, side="right"), len(counts) - 1)
    within = (position - (ends[at] - counts[at])) / counts[at]
    found: Numbers = start[at] + (end[at] - start[at]) * within
    return found


def levels(units: int = UNITS) -> Numbers:
    """Returns the probabilities (i + ½)/h at which the centres are quantiles."""
    return (np.arange(units) + 0.5) / units
