"""What lies beyond the training values: tail laws and limits, by construction, not learned.

A column of n values puts 1/(n + 1) of its mass above the greatest of them and as much below the
least, as the next row does, unless there is a limit. In each row it is a fixed part of the mass
that the model has for the outermost values, so that it follows what the row is given. The law is an
exponential on the column's scale.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

LOOKED_AT = 4096
"""Distinct values next to an end that a tail is fitted to at most: enough for 16 million rows."""


@dataclass(frozen=True)
class Tail:
    """An exponential law of the distance d beyond an end of the body, in units of the scale.

    share: The mass beyond the end of all rows, 0 where a limit allows none.
    rate: One over the mean distance, before the limit cuts it off.
    room: The greatest distance there can be.
    edge: The innermost of the outermost values, as a number of the model.
    part: The mean mass of the outermost values: their share of the training values, or what a
        model has for them.
    """

    share: float
    rate: float
    room: float = math.inf
    edge: float = 0.0
    part: float = 1.0

    @property
    def cut(self) -> float:
        """What a row's outermost mass loses to what lies beyond, as a share of it."""
        return self.share / self.part

    def given(self) -> Tail:
        """Returns the law of values of which it is known that they lie beyond."""
        return replace(self, share=1.0) if self.share else self

    def log_density(self, distance: Numbers) -> Numbers:
        """Returns the logarithm of the density at distances d > 0; −inf where there is no room."""
        with np.errstate(divide="ignore"):
            law = np.log(self.share) + math.log(self.rate) - self._log_room() - self.rate * distance
        return np.where(distance <= self.room, law, -np.inf)

    def log_mass(self, near: Numbers, far: Numbers) -> Numbers:
        """Returns the logarithm of the mass between two distances, 0 ≤ near ≤ far."""
        far = np.minimum(far, self.room)
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.log(-np.expm1(-self.rate * np.maximum(far - near, 0.0)))
            law = np.log(self.share) - self._log_room() - self.rate * near + width
        return np.where(far > near, law, -np.inf)

    def _log_room(self) -> float:
        return float(np.log(-np.expm1(-self.rate * self.room)))

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it; no limit is null."""
        return asdict(self) | {"room": None if math.isinf(self.room) else self.room}


def from_dict(record: dict[str, Any]) -> Tail:
    """Returns the tail that `Tail.to_dict` described."""
    room = math.inf if record["room"] is None else record["room"]
    return Tail(record["share"], record["rate"], room, record["edge"], record["part"])


NO_TAIL = Tail(0.0, 1.0)

FEWEST_OUTERMOST = 5
"""Outermost values of a small table."""

UNLIKELY = -math.log(0.01)
"""−log of a probability that counts as none."""

STEEPEST = 2.0**53
"""Rate of a tail that ends within the rounding of points of ordinary size."""


def share(rows: int) -> float:
    """Returns the mass beyond one end of so many values: 1/(n + 1), as for the next row."""
    return 1 / max(rows + 1, 4)


def outermost(
    numbers: NDArray[np.float32], side: int, counts: NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """Returns the innermost of the outermost half of √n numbers, and the share that they are.

    side: −1 for the least, 1 for the greatest. The median is never among them, and equal numbers
        are together, unless there is no other number.
    counts: How often each number occurs; by default once.
    """
    order = np.argsort(side * numbers)[::-1]  # the outermost first
    away = side * numbers[order]
    upto = np.arange(1, len(away) + 1) if counts is None else np.cumsum(counts[order])
    count = int(upto[-1])
    wanted = min(max(FEWEST_OUTERMOST, math.ceil(math.sqrt(count) / 2)), max(count // 2, 1))
    edge = away[np.searchsorted(upto, wanted)]
    if edge <= away[np.searchsorted(upto, count // 2, side="right")]:
        edge = away[0]
    return float(side * edge), float(upto[np.flatnonzero(away >= edge)[-1]] / count)


def rate(distance: Numbers, counts: Numbers, step: float = 0.0) -> float:
    """Returns the rate of the exponential that the outermost √n values follow.

    distance: How far the values lie inside the extreme one, ascending from 0.
    counts: How often each occurs.
    step: Width of the outermost cell of a grid, for which the law is geometric; 0 for real numbers.

    The mean excess m over a threshold is 1/rate for an exponential, 1/(exp(rate · step) − 1) steps
    for a geometric law. It is never taken greater than the range of the values.
    """
    total = np.cumsum(counts[:LOOKED_AT] if len(counts) > LOOKED_AT else counts)
    wanted = max(5.0, math.sqrt(float(np.sum(counts))))
    while True:
        at = min(int(np.searchsorted(total, wanted)), len(total) - 1)
        rows = float(total[at])
        excess = float((distance[at] - distance[: at + 1]) @ counts[: at + 1])
        if excess > 0 or step > 0 or at == len(total) - 1:
            break
        wanted *= 2
    if step > 0:
        mean = (excess + step) / (rows + 1)
        return min(math.log1p(step / mean) / step, STEEPEST)
    mean = excess / max(rows - float(counts[at]), 1.0)
    return min(1.0 / mean, STEEPEST) if mean > 0 else 1.0


def closed(counts: Numbers) -> bool:
    """Whether an end is a limit: its frequency would make values beyond it certain, were there any.

    counts: How often the outermost distinct values occur, the extreme one first.

    Frequencies c₁, c₂, … that go on as they came, in a geometric law, leave c₁²/c₂ rows beyond
    the end, so that there is none by chance has probability exp(−c₁²/c₂). Two values alone are
    the whole range.
    """
    if len(counts) <= 2:
        return True
    return float(counts[0]) ** 2 / float(counts[1:5].mean()) > UNLIKELY


def near(gap: float, distance: Numbers, counts: Numbers, means: float = 1.0) -> bool:
    """Whether the extreme value stops so short of a natural limit, by a gap, that it shows.

    distance, counts: As for `rate`, in the units of the gap.
    means: Mean excesses of the outermost values that the gap may have.

    Without a limit the extreme value would miss any given point by about the mean excess of the
    outermost values, so a gap below that speaks for the limit. If it is wrong, little is lost:
    values beyond it keep the probability of what has never been seen.
    """
    return gap * rate(distance, counts) <= means
