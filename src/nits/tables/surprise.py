"""How surprising values are, free of units: the probability of values at most as likely.

With ν the law of a column given those modelled before it, on the scale on which it is modelled,

    p(x) = P(ν(X) ≤ ν(x))                                                                    (36)

It is uniform for real columns, and no more often small for discrete ones. Real columns with atoms
or holes are asked twice: p is the probability of a part (an atom, the holes, all other values) of
at most the mass of that of x, times (36) within that part. Masses and densities are not compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.heads import Categorical
from nits.tables import means
from nits.tables.columns import plainly
from nits.tables.columns.column import BODY, LOWER, UPPER, Coded, Column, Flags, Numbers
from nits.tables.columns.first import First
from nits.tables.columns.numeric import Numeric
from nits.tables.conditional import Conditional
from nits.tables.frames import Values

LISTED = 128
"""Discrete columns of at most so many values are summed one by one."""

FIRST, MORE, LOOKS = 16, 24, 2
"""Points by which the level sets of others are measured: first even ones, then, at each further
look, quantiles of what was seen so far."""

FAR = 1e-5
"""The outermost of these quantiles."""

_PLACES = np.linspace(-1, 1, MORE)
LEVELS = 1 / (1 + (1 / FAR - 1) ** -(_PLACES * (0.3 + 0.7 * _PLACES**2)))
"""These quantiles, denser in the middle and at both ends than between."""

SAME = 1e-5
"""Differences of log-probabilities that are rounding."""

CLOSE = 1e-5
"""Share of a real column's range that is at least as unlikely as any value: none has p = 0."""

LEAST = 1e-12
"""Least mass of the values that are no atoms, where a logarithm of it is taken."""

READ_BY = (1,)


def log_surprise(column: Column, law: Any, coded: Coded, values: Values) -> Numbers:
    """Returns log p, equation (36), of each of N values of a column.

    law: The distribution of the column's numbers given the columns before, batch shape (N,).
    coded: The values as numbers.

    For what was never seen it is the logarithm of that probability, and −inf if it is ruled out.
    """
    if isinstance(column, First):
        raise ValueError(
            "the surprise of values is known to models of version 0.3 or later, but this one is "
            "older; fit it again."
        )
    parts = _parts(column, law, coded.numbers)
    level = _logs(law, coded.numbers) - parts.log_rest + column.log_left
    beyond = _beyond(column, law, values)
    level = np.where(beyond.side == BODY, level, beyond.levels(column, coded))
    numbers = np.where(parts.spiked, np.nan, coded.numbers)
    inside = _inside(column, law, parts, numbers, level - column.log_left) + column.log_left
    found = np.minimum(np.logaddexp(inside, beyond.up_to(level)), 0.0)
    found = np.where(parts.spiked, 0.0, found) + parts.log_reached
    alone = coded.fixed & ((beyond.side == BODY) | coded.unseen | np.isneginf(coded.log_prob))
    return np.where(alone, coded.log_prob, found)


def _logs(law: Any, numbers: NDArray[Any]) -> Numbers:
    with torch.no_grad():
        found: torch.Tensor = law.log_prob(torch.from_numpy(numbers.astype(np.float32)))
    return found.double().numpy()


class _Parts(NamedTuple):
    """The parts of a real column: its atoms and holes, called spikes, and the rest.

    spikes: The numbers of the spikes, shape (K,).
    masses: Their probabilities given each row, shape (K, N).
    log_rest: That of the rest, log, shape (N,).
    spiked: Which entries are spikes.
    log_reached: Log of the probability of parts of at most the mass of the entry's own.
    """

    spikes: NDArray[np.float32]
    masses: Numbers
    log_rest: Numbers
    spiked: Flags
    log_reached: Numbers


def _parts(column: Column, law: Any, numbers: Numbers) -> _Parts:
    spikes, rows = _spikes(column), len(numbers)
    if not len(spikes):
        zero = np.zeros(rows)
        return _Parts(spikes, np.empty((0, rows)), zero, np.zeros(rows, bool), zero)
    masses = np.exp(_logs(law, np.repeat(spikes[:, None], rows, 1)))
    rest = np.maximum(1 - masses.sum(0), LEAST)
    every = np.concatenate([masses, rest[None]])
    at = numbers.astype(np.float32) == spikes[:, None]
    which = np.where(at.any(0), at.argmax(0), len(spikes))
    own = np.take_along_axis(every, which[None], 0)
    reached = np.where(every <= own * (1 + SAME), every, 0.0).sum(0)
    return _Parts(spikes, masses, np.log(rest), at.any(0), np.log(np.minimum(reached, 1.0)))


def _spikes(column: Column) -> NDArray[np.float32]:
    if not isinstance(column, Numeric) or column.kind != "continuous":
        return np.empty(0, np.float32)
    holes = np.array([column.missing_number] if column.optional else [], np.float32)
    return np.concatenate([holes, column.spikes])


class _Beyond(NamedTuple):
    """The tails of a column beyond its training values, which are fixed by construction.

    side: Where each entry lies: LOWER, BODY or UPPER.
    shares: Masses of the tails in each row.
    starts: Log-levels of the tails next to the training values, given that a value is there.
    distance: How far entries lie beyond an end, on the scale.
    """

    side: NDArray[np.int8]
    shares: tuple[Numbers, Numbers]
    starts: tuple[float, float]
    distance: Numbers

    def up_to(self, level: Numbers) -> Numbers:
        """Returns the tails' log-mass at log-levels up to those of entries: they fall steadily."""
        found = np.full(len(level), -np.inf)
        for share, start in zip(self.shares, self.starts, strict=True):
            if share.any():
                logs = np.log(share)
                found = np.logaddexp(found, logs + np.minimum(level - logs - start, 0.0))
        return found

    def levels(self, column: Column, coded: Coded) -> Numbers:
        """Returns log-levels of entries beyond an end: densities on the scale, or probabilities."""
        if not isinstance(column, Numeric):
            return coded.log_prob
        found = np.full(len(self.side), -np.inf)
        for side, share in zip((LOWER, UPPER), self.shares, strict=True):
            at = (self.side == side) & (share > 0)
            law = coded.log_prob - column.log_left
            if column.kind == "continuous" and at.any():
                law[at] = column.ruler.law(side).given().log_density(self.distance[at])
            found[at] = law[at] + np.log(share[at])
        return found


def _beyond(column: Column, law: Any, values: Values) -> _Beyond:
    side, distance = np.zeros(len(values), np.int8), np.zeros(len(values))
    if not isinstance(column, Numeric):
        return _Beyond(side, (distance, distance), (0.0, 0.0), distance)
    plain, broken = plainly.numbers(values, column.facts, column.unit)
    side = np.where(values.missing | broken, BODY, column.ruler.side(plain)).astype(np.int8)
    x = column.ruler.numbers(plain)
    for which in (LOWER, UPPER):
        at = side == which
        if at.any():
            distance[at] = column.ruler.distance(x[at], which)
    bent, starts = Conditional(column, law).bent(), (_start(column, LOWER), _start(column, UPPER))
    return _Beyond(side, (bent.lower, bent.upper), starts, distance)


def _start(column: Numeric, side: int) -> float:
    """Returns the log-level of a tail next to the training values."""
    ruler = column.ruler
    if not ruler.law(side).share:
        return 0.0
    if column.kind == "continuous":
        level = ruler.law(side).given().log_density(np.zeros(1))
    else:
        last = ruler.numbers(np.array([ruler.least if side == LOWER else ruler.greatest]))
        level = column.log_beyond(last + side * ruler.resolution.at(last), side)
    return float(level[0])


def _inside(column: Any, law: Any, parts: _Parts, numbers: Numbers, level: Numbers) -> Numbers:
    """Returns the law's log-mass at log-levels up to those of entries, in the rest, shape (N,).

    numbers: Those of the entries that are no spikes, NaN of the others.
    """
    head = column.head(READ_BY, 0)
    if head.discrete:
        every = np.arange(head.levels) if isinstance(head, Categorical) else _listed(column)
        if len(every) <= LISTED:
            logs = _logs(law, np.repeat(every[:, None], len(level), 1))
            return _log(np.where(logs <= level + SAME, np.exp(logs), 0.0).sum(0))
    points, below = _points(column, law, parts.spikes, numbers)
    for spike, mass in zip(parts.spikes, parts.masses, strict=True):
        below = below - mass * (points >= spike)
    below = np.clip(below / np.exp(parts.log_rest), 0.0, 1.0)
    found = _log(_level_set(below, _logs(law, points) - parts.log_rest, level))
    # What is at most as likely as an integer includes it, and as a real number what is next to it.
    width = 1.0 if head.discrete else CLOSE * (points[-1] - points[0])
    return np.asarray(np.maximum(found, level + np.log(width)))


def _log(mass: Numbers) -> Numbers:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass))


def _listed(column: Any) -> NDArray[np.int64]:
    """Returns all numbers of a column of integers, that of holes included."""
    low, high = column.ends()
    return np.arange(int(low) - column.optional, int(high) + 1)


def _points(
    column: Numeric, law: Any, spikes: NDArray[np.float32], numbers: Numbers
) -> tuple[Numbers, Numbers]:
    """Returns points, ascending, no spikes among them, and the cdf there, both of shape (M, N).

    numbers: Of entries, which are among the points.
    """
    ends = torch.tensor([[FAR], [1 - FAR]]).expand(-1, *law.batch_shape)
    low, high = column.span
    if not np.isfinite(high - low):
        low, high = law.icdf(ends).double().numpy()
    even = np.linspace(0, 1, FIRST)[:, None] * np.ones(law.batch_shape)
    own = np.where(np.isfinite(numbers), numbers, (low + high) / 2)
    points = np.sort(_apart(np.vstack([low + (high - low) * even, own]), column, spikes), 0)
    below = np.maximum.accumulate(_below(law, points))
    for _ in range(LOOKS):
        new = _apart(means.quantiles(points, below, LEVELS), column, spikes)
        every, masses = np.concatenate([points, new]), np.concatenate([below, _below(law, new)])
        order = np.argsort(every, axis=0, kind="stable")
        points, below = (np.take_along_axis(found, order, 0) for found in (every, masses))
        below = np.maximum.accumulate(below)
    return points, below


def _apart(points: Numbers, column: Numeric, spikes: NDArray[np.float32]) -> Numbers:
    """Returns numbers that the column has near some points, but none of the spikes."""
    if column.kind != "continuous":
        return np.rint(np.clip(points, *column.ends()))
    found = np.clip(points, *column.ends()).astype(np.float32)
    for spike in spikes:
        found = np.where(found == spike, np.nextafter(spike, np.float32(np.inf)), found)
    return found.astype(np.float64)


def _below(law: Any, points: Numbers) -> Numbers:
    with torch.no_grad():
        found: torch.Tensor = law.cdf(torch.from_numpy(points.astype(np.float32)))
    return found.double().numpy()


def _level_set(below: Numbers, logs: Numbers, level: Numbers) -> Numbers:
    """Returns the mass at log-densities up to levels, shape (N,), from M points, shape (M, N).

    below, logs: The cdf and the log-density at the points.

    Between neighbouring points and beyond the outermost the density is taken to be exponential, so
    that the mass at densities up to t grows linearly with t.
    """
    mass = np.maximum(np.diff(below, axis=0), 0.0)
    low, high = np.minimum(logs[:-1], logs[1:]), np.maximum(logs[:-1], logs[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        foot = np.exp(low - high)
        height = np.exp(np.minimum(level - high, 0.0))
        share = (height - foot) / (1 - foot)
    share = np.where(level >= high, 1.0, np.where(level <= low, 0.0, share))
    found = (mass * share).sum(0)
    for tail, start in ((below[0], logs[0]), (1 - below[-1], logs[-1])):
        found = found + tail * np.exp(np.minimum(level - start, 0.0))
    return np.asarray(np.clip(found, 0.0, 1.0))
