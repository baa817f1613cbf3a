"""Columns of numbers, times and durations: what is common to lists, grids and real numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns import plainly
from nits.tables.columns.beyond import Beyond, beyond
from nits.tables.columns.column import BODY, LOWER, UPPER, Coded, Column, Flags, Numbers, Sides
from nits.tables.columns.ruler import Ruler
from nits.tables.frames import Values


@dataclass(frozen=True)
class Numeric(Column):
    """A column with a ruler.

    unit: The type of times and durations, such as "M8[ns]", whose ticks are counted; None for
        numbers.
    ruler: Where values lie.
    """

    unit: str | None
    ruler: Ruler

    @property
    def beyond(self) -> Beyond:
        """What lies below the least value and above the greatest, equation (28)."""
        (low, high), tails = self.within, (self.ruler.lower, self.ruler.upper)
        outer = (low, tails[0].edge), (self.under(tails[1].edge), min(high, self.span[1]))
        return beyond(tails, outer, self.known)

    def under(self, number: float) -> float:
        """Returns a number below this one, and above all smaller ones of the column."""
        if self.kind != "continuous":
            return number - 0.5
        return float(np.nextafter(np.float32(number), np.float32(-np.inf)))

    @property
    @abstractmethod
    def missing_number(self) -> float:
        """The number that stands for a hole, outside those of all values."""

    @property
    def within(self) -> tuple[float, float]:
        """The numbers above that of a hole, which comes first; but see `Codes`."""
        return (self.missing_number if self.optional else -math.inf), math.inf

    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """Returns the numbers of the least and the greatest training value."""

    @abstractmethod
    def place(self, plain: NDArray[Any]) -> tuple[Numbers, Flags]:
        """Returns the nearest number of each value, and whether it stands for just that value."""

    @abstractmethod
    def log_measure(self, plain: NDArray[Any], numbers: Numbers) -> Numbers:
        """Returns what to add to the log-probability of numbers for the units of the table."""

    @abstractmethod
    def log_beyond(self, x: Numbers, side: int) -> Numbers:
        """Returns log-probabilities of values, less the base, given that they are beyond an end."""

    @abstractmethod
    def values(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the plain values of numbers that stand for one."""

    def encode(self, values: Values) -> Coded:
        """Returns numbers between the ends, and fixed log-probabilities beyond them."""
        plain, broken = plainly.numbers(values, self.facts, self.unit)
        n = len(plain)
        known = ~values.missing & ~broken
        side = np.where(known, self.ruler.side(plain), BODY).astype(np.int8)
        numbers, exact = self.place(plain)
        numbers = np.where(known, numbers, self._middle())
        log_prob = np.full(n, np.log(self.unseen))
        unseen = ~known | ~exact
        body = (side == BODY) & ~unseen
        log_prob[body] = self.log_kept(numbers[body])
        log_prob[body] += self.log_measure(plain[body], numbers[body])
        for which in (LOWER, UPPER):
            self._beyond(plain, which, side, unseen, log_prob)
        if self.optional:
            numbers = np.where(values.missing, self.missing_number, numbers)
            left = self.log_left + math.log(self.beyond.left)
            log_prob = np.where(values.missing, left, log_prob)
            body, unseen = body | values.missing, unseen & ~values.missing
        out = self.ruler.ruled_out(plain) & ~values.missing
        log_prob[out], side[out] = -np.inf, BODY
        return Coded(numbers, log_prob, ~body | out, unseen & ~out, side)

    def log_kept(self, numbers: Numbers) -> Numbers:
        """Returns what to add to the model's log-probability of numbers of known values."""
        ends, found = self.beyond, np.full(len(numbers), self.beyond.left)
        near = numbers.astype(np.float32)
        for end in (ends.lower, ends.upper):
            if end:
                low, high = (np.float32(number) for number in end.outer)
                found[(near > low) & (near <= high)] = end.left
        return np.asarray(self.log_left + np.log(found))

    def _middle(self) -> float:
        """Returns the number at the middle of the scale, which is read where there is no value."""
        return float(self.place(self.ruler.body(self.ruler.scale.back(np.zeros(1))))[0][0])

    def _beyond(
        self, plain: NDArray[Any], which: int, side: Sides, unseen: Flags, log_prob: Numbers
    ) -> None:
        """Sets the log-probability of values beyond an end, and whether they count as unseen.

        A value that no tail reaches, because a limit was found, is unseen; one off the grid has
        the tail's probability times that of what was never seen.
        """
        at = side == which
        if not at.any():
            return
        law = self.log_beyond(self.ruler.numbers(plain[at]), which)
        off = unseen[at] * np.log(self.unseen)
        reached = np.isfinite(law)
        log_prob[at] = np.where(reached, self.log_left + law + off, np.log(self.unseen))
        unseen[at] |= ~reached
        side[at] = np.where(reached, which, BODY)

    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns values between the ends, and holes."""
        holes = (
            numbers == np.float64(np.float32(self.missing_number))
            if self.optional
            else np.zeros(len(numbers), bool)
        )
        known = np.where(holes, self.ends()[0], numbers)
        return plainly.values(self.values(known), holes, self.facts, self.unit)

    def reach(self, values: Values) -> tuple[Numbers, tuple[Numbers, Numbers]]:
        """Returns the greatest number up to each value, and the shares of the tails up to it."""
        plain, _ = plainly.numbers(values, self.facts, self.unit)
        side, x = self.ruler.side(plain), self.ruler.numbers(plain)
        numbers, exact = self.place(plain)
        numbers = self.down(numbers, ~exact & (self.values(numbers) > plain))
        numbers = np.where(side == LOWER, self.ends()[0] - 0.5, numbers)
        passed = [
            self.ruler.passed(x, which, self.kind != "continuous") for which in (LOWER, UPPER)
        ]
        below = np.where(side == LOWER, 1 - passed[0], 1.0)
        return numbers, (below, np.where(side == UPPER, passed[1], 0.0))

    def down(self, numbers: Numbers, above: Flags) -> Numbers:
        """Returns the greatest numbers up to values, some of which their numbers lie above."""
        return numbers - above

    @property
    def span(self) -> tuple[float, float]:
        """Where the numbers of known values begin and end, cells included."""
        low, high = self.ends()
        return (low, high) if self.kind == "continuous" else (low - 0.5, high + 0.5)

    @property
    def spikes(self) -> NDArray[np.float32]:
        """The numbers of atoms of a density, ascending."""
        return np.empty(0, np.float32)

    @abstractmethod
    def amount(self, numbers: Numbers) -> Numbers:
        """Returns what numbers, which need not be whole, are worth, less the base."""

    def amount_beyond(self, side: int, u: Numbers) -> Numbers:
        """Returns what values beyond an end are worth, less the base."""
        return self.ruler.numbers(self.ruler.drawn(side, u))

    def end(self, side: int) -> float:
        """Returns the number of the least or the greatest training value."""
        return self.ends()[0] if side == LOWER else self.ends()[1]

    def drawn_beyond(self, side: int, u: Numbers) -> NDArray[Any]:
        """Returns values beyond an end, at probabilities u of what lies there."""
        plain = self.ruler.drawn(side, u)
        return plainly.values(plain, np.zeros(len(u), bool), self.facts, self.unit).array

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        return {**super().to_dict(), "unit": self.unit, "ruler": self.ruler.to_dict()}
