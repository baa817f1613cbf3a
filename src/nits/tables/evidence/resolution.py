"""How finely a column's values are recorded: the base measure on which candidates are compared."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence.grids import SURE

Numbers = NDArray[np.float64]

AFFECTED = 8
"""Distinct values that must be coarser than the grid before significant digits
explain it: the chance that so many end in a zero is 1e-8."""


@dataclass(frozen=True)
class Resolution:
    """The distance between neighbouring values that could have been recorded.

    step: The step of the grid that holds all values; where there is none, a unit in the last
        place of the smallest value.
    digits: Significant decimal digits of all values, 0 if that says no more than the step.
    precision: A unit in the last place of numbers near 1: no value is recorded more finely.
    """

    step: float
    digits: int
    precision: float

    def at(self, x: Numbers) -> Numbers:
        """Returns the distance to the next recordable value, at values x."""
        fine = np.maximum(self.step, self.precision * np.abs(x))
        if not self.digits:
            return fine
        return np.maximum(fine, _power(_exponent(x) + 1 - self.digits))

    def rounded(self, x: Numbers) -> Numbers:
        """Returns values with the significant digits that were recorded, as decimals are read."""
        if not self.digits:
            return x
        exponent = _exponent(x) + 1 - self.digits
        up, down = _power(np.maximum(exponent, 0)), _power(np.maximum(-exponent, 0))
        found: Numbers = np.rint(x * down / up) * up / down
        return found

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it."""
        return asdict(self)


def find(x: Numbers, step: float, precision: float) -> Resolution:
    """Returns the resolution of distinct values.

    step: Of the even grid that holds them, 0 if there is none.
    precision: A unit in the last place of numbers near 1, 0 for integers.
    """
    size = np.abs(x[x != 0])
    if not len(size):
        return Resolution(step or 1.0, 0, precision)
    smallest = max(precision * float(size.min()), 5e-324)
    digits = _digits(size, max(precision, 2e-16))
    if digits and step:
        coarser = _power(_exponent(size) + 1 - digits) > 1.5 * step
        digits = digits if int(coarser.sum()) >= AFFECTED else 0
    return Resolution(step or smallest, digits, precision)


def _digits(size: Numbers, precision: float) -> int:
    """Returns how many significant digits all values have, 0 if as many as the type keeps."""
    most = math.floor(-math.log10(precision)) - 1
    few = size[:: max(1, len(size) // 32)]
    for digits in range(1, most + 1):
        if _short(few, digits, precision) and _short(size, digits, precision):
            return digits
    return 0


def _short(size: Numbers, digits: int, precision: float) -> bool:
    """Whether no value misses so many digits by more than rounding, which is no chance.

    With about as many digits as the type keeps, some numbers, or all, are within rounding of one;
    and numbers that few digits do not tell apart have more.
    """
    unit = _power(_exponent(size) + 1 - digits)
    lead = size / unit
    slack = 32 * precision * lead
    if not bool((np.abs(lead - np.rint(lead)) <= slack).all()):
        return False
    doubt = -np.log(np.minimum(2 * slack, 1.0)).sum()
    apart = len(np.unique(np.rint(lead) * unit)) * 2 > len(np.unique(size))
    return bool(doubt >= SURE) and apart


def _exponent(x: Numbers) -> Numbers:
    """Returns ⌊log₁₀ |x|⌋, and for zero that of the smallest float."""
    size = np.maximum(np.abs(x), 5e-324)
    guess = np.floor(np.log10(size))
    found: Numbers = guess + (_power(guess + 1) <= size) - (_power(guess) > size)
    return found


def _power(exponent: Numbers) -> Numbers:
    """Returns powers of ten, never 0 or infinite."""
    found: Numbers = np.float_power(10.0, np.clip(exponent, -323, 308))
    return found
