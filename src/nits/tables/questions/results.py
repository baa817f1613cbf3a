"""Results of questions: numbers that carry their standard error and effective sample size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DAY = 86_400
"""Seconds."""

DIGITS = 15
"""Digits that a float has."""

SMALL = 1e-4
"""Below it an estimate is written with an exponent."""


class Estimate(NamedTuple):
    """A number, or one for each row of a table.

    estimate: The number.
    error: Its standard error, 0 where it is exact; of a time, in seconds.
    ess: The effective number of particles behind it, infinite where it is exact.
    """

    estimate: Any
    error: Any
    ess: Any

    def __float__(self) -> float:
        return float(self.estimate)

    def __str__(self) -> str:
        if np.ndim(self.estimate):
            return repr(self)
        if math.isinf(self.ess):
            return f"{self.estimate} (exact)"
        return f"{self._with_error()} (effective sample size {self.ess:.0f})"

    def _with_error(self) -> str:
        """Returns the estimate to the digits that its error leaves, and the error."""
        if isinstance(self.estimate, np.datetime64 | np.timedelta64):
            seconds = f"{self.error:.2g} seconds"
            days = f"{self.error / DAY:.2g} days"
            return f"{self.estimate} ± {days if self.error > DAY else seconds}"
        if not self.error or not math.isfinite(self.error):
            return f"{self.estimate} ± {self.error:.2g}"
        size = abs(float(self.estimate))
        if 0 < size < SMALL:
            digits = max(1, 1 + math.floor(math.log10(size)) - math.floor(math.log10(self.error)))
            return f"{float(self.estimate):.{min(digits, DIGITS)}e} ± {self.error:.2g}"
        whole = math.floor(math.log10(size)) + 1 if size else 0
        digits = min(1 - math.floor(math.log10(self.error)), DIGITS - whole)
        return f"{float(self.estimate):.{max(digits, 0)}f} ± {self.error:.2g}"


class Found(np.ndarray):
    """An array of values, such as quantiles, with what is known about its precision.

    error: Standard errors, an array of the same shape; of times, in seconds.
    ess: The effective number of particles, infinite where the values are exact.
    """

    error: Any
    ess: Any

    @classmethod
    def of(cls, values: NDArray[Any], error: Any, ess: Any) -> Found:
        """Returns values with their precision."""
        found = np.asarray(values).view(cls)
        found.error, found.ess = error, ess
        return found

    def __array_finalize__(self, other: Any) -> None:
        self.error = getattr(other, "error", None)
        self.ess = getattr(other, "ess", None)

    def __repr__(self) -> str:
        plain = np.array2string(np.asarray(self), separator=", ")
        if self.ess is None:
            return plain
        if np.all(np.isinf(self.ess)):
            return f"{plain} (exact)"
        size = f"(effective sample size {np.min(self.ess):.0f})"
        if self.error is None:
            return f"{plain} {size}"
        error = np.array2string(np.asarray(self.error), precision=2, separator=", ")
        return f"{plain} ± {error} {size}"

    def __str__(self) -> str:
        return repr(self)


class Probabilities(dict[Any, float]):
    """The probability of each category.

    error: The standard error of each, by category.
    ess: The effective number of particles, infinite where the probabilities are exact.
    """

    def __init__(
        self,
        levels: Sequence[Any],
        found: NDArray[np.float64],
        error: NDArray[np.float64],
        ess: float,
    ) -> None:
        super().__init__(zip(levels, found.tolist(), strict=True))
        self.error = dict(zip(levels, error.tolist(), strict=True))
        self.ess = ess

    def __repr__(self) -> str:
        if math.isinf(self.ess):
            return f"{super().__repr__()} (exact)"
        most = max(self.error.values(), default=0.0)
        return f"{super().__repr__()} (± {most:.2g}, effective sample size {self.ess:.0f})"
