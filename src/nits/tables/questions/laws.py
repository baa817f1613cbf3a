"""One column of many particles: the mass of an event under its law, and draws inside it.

The law of a column has the model's numbers, and beyond the training values the tails of (28), which
take a part of the mass of the outermost numbers. What was never seen has no draws: all else is
scaled up to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nits.heads import Given
from nits.model.steps import HeadSteps, Steps
from nits.tables.columns import Column
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.questions.cuts import before
from nits.tables.questions.events import Event, Interval

LEAST = 1e-12
"""The smallest share of a tail, whose sign must tell the two tails apart."""


SMALL = 1e-2
"""Masses below this are found in float64."""

Function = Callable[[Tensor], Tensor]


class Drawn(NamedTuple):
    """Values of a column, each of shape (N,).

    numbers: What the model reads: for values beyond the training values, the number of the end.
    tails: The share of the upper tail up to a value that lies there, minus that of the lower tail
        for a value there, and NaN for all others.
    """

    numbers: Tensor
    tails: Tensor


class Law:
    """The distribution of one column, of which `Steps` has the model's part.

    column: What it is.
    """

    def __init__(self, column: Column) -> None:
        self.column, self.beyond = column, column.beyond
        self.tails = (self.beyond.lower, self.beyond.upper)
        sides = zip((LOWER, UPPER), self.tails, strict=True)
        self.ends = [float(column.end(side)) if tail else 0.0 for side, tail in sides]

    def free(self, steps: Steps, u: Tensor, coins: Tensor) -> Drawn:
        """Draws values at probabilities u, shape (N,).

        coins: Uniform numbers, shape (N,), by which some values are moved beyond an end.
        """
        drawn = Drawn(steps.draw(u), torch.full_like(u, torch.nan))
        lower, upper = (tail.floor for tail in self.tails)
        rest = (coins - lower) / (1 - lower - upper)  # uniform where it lies in (0, 1)
        numbers = drawn.numbers
        for side, tail in enumerate(self.tails):
            if not tail:
                continue
            sign, floor = 2 * side - 1, coins if side == 0 else 1 - coins
            share = tail.slope / self.beyond.left
            near = (numbers > tail.outer[0]) & (numbers <= tail.outer[1])
            at = near & (rest >= 0) & (rest < share)
            drawn = self._put(drawn, at, side, sign * (rest / share).clamp(LEAST, 1.0))
            at = floor < tail.floor
            drawn = self._put(drawn, at, side, sign * (floor / tail.floor).clamp(LEAST, 1.0))
        return drawn

    def log_beyond(self, steps: Steps, side: Tensor) -> Tensor:
        """Returns the log-probability of lying beyond an end where side says so, and 0 elsewhere.

        side: LOWER, BODY or UPPER, shape (N,).
        """
        found = torch.zeros(len(side), dtype=torch.float64)
        for which, tail in zip((LOWER, UPPER), self.tails, strict=True):
            if tail and bool((side == which).any()):
                like = torch.empty(len(side), dtype=torch.float32)
                mass = self._mass(steps, tail.outer, like)[0]
                found = torch.where(side == which, (tail.slope * mass + tail.floor).log(), found)
        return found

    def _put(self, drawn: Drawn, at: Tensor, side: int, share: Tensor) -> Drawn:
        """Puts values into a tail."""
        end = torch.full_like(drawn.numbers, self.ends[side])
        return Drawn(
            torch.where(at, end, drawn.numbers), torch.where(at, share.to(drawn.tails), drawn.tails)
        )

    def inside(
        self, steps: Steps, event: Event | None, u: Tensor, coins: Tensor
    ) -> tuple[Tensor, Drawn]:
        """Draws values in an event at probabilities u; returns its log-probability, too."""
        if event is None:
            return torch.zeros_like(u, dtype=torch.float64), self.free(steps, u, coins)
        pieces = [piece for ends in event.numbers for piece in self.beyond.pieces(ends)]
        inner = [self._mass(steps, ends, u) for ends, _ in pieces]
        masses = [left * mass for (mass, _), (_, left) in zip(inner, pieces, strict=True)]
        parts = [(0, part) for part in event.lower] + [(1, part) for part in event.upper]
        for side, (start, stop) in parts:
            tail = self.tails[side]
            whole = tail.slope * self._mass(steps, tail.outer, u)[0] + tail.floor
            masses.append(whole * (stop - start))
        reach = torch.stack(masses).cumsum(0)  # (pieces, N)
        total = reach[-1]
        sought = u.double() * total
        chosen = (sought.unsqueeze(0) > reach[:-1]).sum(0)
        drawn = Drawn(torch.full_like(u, torch.nan), torch.full_like(u, torch.nan))
        for k, mass in enumerate(masses):
            at = chosen == k
            if not bool(at.any()):
                continue
            share = ((sought - (reach[k] - mass)) / mass.clamp_min(1e-300)).clamp(0.0, 1.0)
            if k < len(inner):
                own, below = inner[k]
                level = (below + share * own).to(u).clamp(*_open(u))
                found = self._quantile(steps, pieces[k][0], level)
                drawn = drawn._replace(numbers=torch.where(at, found, drawn.numbers))
            else:
                side, (start, stop) = parts[k - len(inner)]
                place = (start + share * (stop - start)).clamp(LEAST, 1.0)
                drawn = self._put(drawn, at, side, place if side else -place)
        return total.log(), drawn

    def _quantile(self, steps: Steps, ends: Interval, u: Tensor) -> Tensor:
        """Returns quantiles between the ends of an interval, which are in it whatever rounds."""
        low, high = ends
        if self.single(ends):
            return torch.full_like(u, high)
        floor = low if math.isinf(low) else _after(low, self.column.kind != "continuous")
        return steps.quantile(u).clamp(floor, high)

    def _mass(self, steps: Steps, ends: Interval, like: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the model's mass of an interval, and that below it, in float64."""
        if self.single(ends):
            number = torch.full_like(like, ends[1])
            return steps.log_prob(number).double().exp(), torch.zeros_like(number)
        mass, below = _between(steps.cdf, like, ends)
        if isinstance(steps, HeadSteps) and bool((mass < SMALL).any()):
            mass, below = _between(_precise(steps), like.double(), ends)
        return mass, below

    def single(self, ends: Interval) -> bool:
        """Returns whether an interval has just one number, which has a probability of its own."""
        low, high = ends
        if math.isinf(low) or math.isinf(high):
            return False
        if self.column.kind == "continuous":
            return low == before(high)
        return math.floor(high) - math.floor(low) == 1


def _between(cdf: Function, like: Tensor, ends: Interval) -> tuple[Tensor, Tensor]:
    """Returns the mass of an interval, and that below it, in float64."""
    below = torch.zeros_like(like, dtype=torch.float64)
    above = torch.ones_like(below)
    if ends[0] > -math.inf:
        below = cdf(torch.full_like(like, ends[0])).double()
    if ends[1] < math.inf:
        above = cdf(torch.full_like(like, ends[1])).double()
    return (above - below).clamp_min(0.0), below


def _precise(steps: HeadSteps) -> Function:
    """Returns the cdf in float64: a difference of float32 numbers near 1 has few digits."""
    given = Given(*(part.double() for part in steps.given))
    return lambda x: steps.head.cdf(given, x)


def _open(u: Tensor) -> tuple[float, float]:
    """Returns the least and the greatest probability whose quantiles are finite."""
    eps = torch.finfo(u.dtype).eps
    return eps / 4, 1 - eps


def _after(low: float, whole: bool) -> float:
    """Returns the least number above the low end of an interval."""
    if whole:
        return math.floor(low) + 1.0
    return float(torch.nextafter(torch.tensor(low), torch.tensor(torch.inf)))
