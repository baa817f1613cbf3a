"""Real numbers: a density on a scale, and values that have a probability of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nits.heads import Atoms, Continuous, Head
from nits.tables.columns import plainly
from nits.tables.columns.column import Flags, Numbers
from nits.tables.columns.cycles import of_ticks
from nits.tables.columns.numeric import Numeric
from nits.tables.evidence import grids
from nits.tables.evidence.scales import Linear


@dataclass(frozen=True)
class Real(Numeric):
    """A column with a density; its number is the place on the scale.

    atoms: Values with a probability of their own, in the column's plain numbers.
    """

    kind: ClassVar[str] = "continuous"
    record: ClassVar[str] = "real"
    atoms: tuple[Any, ...] = ()

    @property
    def missing_number(self) -> float:
        """One below the body."""
        return self.ruler.ends[0] - 1.0

    def ends(self) -> tuple[float, float]:
        """Returns the ends of the body."""
        return self.ruler.ends

    def places(self) -> NDArray[np.float32]:
        """Returns the atoms' numbers, which differ in float32."""
        if not self.atoms:
            return np.empty(0, np.float32)
        x = self.ruler.numbers(plainly.array(self.atoms))
        found = self.ruler.scale.to(x).astype(np.float32)
        for i in range(1, len(found)):
            found[i] = max(found[i], np.nextafter(found[i - 1], np.float32(np.inf)))
        return found

    def place(self, plain: NDArray[Any]) -> tuple[Numbers, Flags]:
        """Returns the places on the scale; none but an atom has the number of one."""
        x = self.ruler.numbers(plain)
        u = np.clip(self.ruler.scale.to(x), *self.ruler.ends)
        numbers = u.astype(np.float32)
        if self.atoms:
            which, at = grids.place(plainly.array(self.atoms), plain)
            places = self.places()
            inward = np.where(numbers > 0, -np.float32(np.inf), np.float32(np.inf))
            for _ in range(len(places)):
                taken = np.isin(numbers, places) & ~at
                if not taken.any():
                    break
                numbers = np.where(taken, np.nextafter(numbers, inward), numbers)
            numbers = np.where(at, places[which], numbers)
        return numbers.astype(np.float64), self.ruler.scale.holds(x)

    def down(self, numbers: Numbers, above: Flags) -> Numbers:
        """Returns the same numbers: those of a gap between teeth are where it begins and ends."""
        return numbers

    def log_measure(self, plain: NDArray[Any], numbers: Numbers) -> Numbers:
        """Returns the scale's log-slope where there is a density, per second for times."""
        found = self.ruler.scale.log_slope(self.ruler.numbers(plain)) + self._per_second
        if self.atoms:
            found = np.where(grids.place(plainly.array(self.atoms), plain)[1], 0.0, found)
        return found

    @property
    def _per_second(self) -> float:
        return 0.0 if self.unit is None else math.log(plainly.per_second(self.unit))

    def log_beyond(self, x: Numbers, side: int) -> Numbers:
        """Returns log-densities of values beyond an end."""
        found = self.ruler.log_density(x, side)
        # At the end of a scale, such as zero on a logarithmic one: the mean of the recorded cell.
        mean = self.ruler.log_mass(x, side) - np.log(self.ruler.resolution.at(x))
        return np.where(np.isfinite(found), found, mean) + self._per_second

    def values(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the recorded values nearest to the places, with atoms exact to the last digit."""
        found = self.ruler.body(self.ruler.scale.back(numbers))
        for place, atom in zip(self.places(), self.atoms, strict=True):
            found[numbers.astype(np.float32) == place] = atom
        return found

    @property
    def spikes(self) -> NDArray[np.float32]:
        """The atoms' numbers."""
        return self.places()

    def amount(self, numbers: Numbers) -> Numbers:
        """Returns the values at places on the scale, less the base."""
        return self.ruler.scale.back(numbers)

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN on the body, with atoms and holes if there are any."""
        low, high = self.ruler.ends
        places = tuple(float(place) for place in self.places())
        values = ((self.missing_number,) if self.optional else ()) + places
        if values:
            return Atoms(values, low, high, hidden, knots, cycles=self._cycles())
        return Continuous(low, high, hidden, knots, cycles=self._cycles())

    def _cycles(self) -> tuple[Any, ...]:
        scale, (low, high) = self.ruler.scale, self.ruler.ends
        if self.unit is None or not isinstance(scale, Linear):
            return ()
        return of_ticks(self.unit, scale.shift + self.ruler.base, scale.width, high - low)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        return {**super().to_dict(), "atoms": list(self.atoms)}
