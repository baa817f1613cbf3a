"""Integers and other values on an even grid, each with a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nits.heads import Cells, CurvedEdges, Head, Inflated
from nits.pnn.curves import Asinh, Curve, Line, Log, Logit
from nits.tables.columns.column import Flags, Numbers
from nits.tables.columns.cycles import of_ticks
from nits.tables.columns.listed import MISSING
from nits.tables.columns.numeric import Numeric
from nits.tables.evidence import scales
from nits.tables.evidence.grids import Grid

LEAST_ULPS = 16
"""Widths of a cell in units of the last place of float32 below which its mass is too coarse."""


@dataclass(frozen=True)
class Gridded(Numeric):
    """A column on an even grid; its number is how many steps a value is above the least one.

    grid: Where values lie.
    count: How many steps of it the training values span.
    atoms: Steps that have a probability of their own beside that of their cell.
    """

    kind: ClassVar[str] = "integer"
    record: ClassVar[str] = "grid"
    grid: Grid
    count: int
    atoms: tuple[int, ...] = ()

    @property
    def missing_number(self) -> float:
        """One less than that of the least value."""
        return MISSING

    def ends(self) -> tuple[float, float]:
        """Returns the first and the last step."""
        return 0.0, self.count - 1.0

    def place(self, plain: NDArray[Any]) -> tuple[Numbers, Flags]:
        """Returns the step nearest to each value, and whether the value lies on it."""
        k, _ = self.grid.encode(plain)
        return np.clip(k, 0, self.count - 1).astype(np.float64), self.grid.holds(plain)

    def log_measure(self, plain: NDArray[Any], numbers: Numbers) -> Numbers:
        """Returns 0: values have probabilities."""
        return np.zeros(len(numbers))

    def log_beyond(self, x: Numbers, side: int) -> Numbers:
        """Returns log-probabilities of values of the grid beyond an end."""
        return self.ruler.log_mass(x, side, self.grid.width)

    def values(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the values of the grid."""
        k = np.clip(numbers, *self.ends()).astype(np.int64)
        return self.grid.decode(k)

    def amount(self, numbers: Numbers) -> Numbers:
        """Returns the values of steps, less the base."""
        return np.asarray(numbers * self.grid.width + start(self.grid, self.ruler.base))

    def curve(self) -> Curve:
        """Returns the scale as a function of the step."""
        return curve(self.ruler.scale, self.grid, self.ruler.base)

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN's masses of cells, and probabilities of atoms and holes."""
        cycles = of_ticks(self.unit, self.grid.start, self.grid.width, self.count)
        cells = Cells(CurvedEdges(self.count, self.curve()), hidden, knots, cycles=cycles)
        values = ((MISSING,) if self.optional else ()) + tuple(float(k) for k in self.atoms)
        return Inflated(cells, values) if values else cells

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        own = {"grid": self.grid.to_dict(), "count": self.count, "atoms": list(self.atoms)}
        return {**super().to_dict(), **own}


def start(grid: Grid, base: int) -> float:
    """Returns the value of step 0 less the base."""
    return float(int(grid.origin) - base) if grid.exact else grid.start - base


def curve(scale: scales.Scale, grid: Grid, base: int) -> Curve:
    """Returns the scale of values origin + k · step, less the base, as a function of k."""
    step, first = grid.width, start(grid, base)
    if isinstance(scale, scales.Linear):
        return Line((scale.shift - first) / step, scale.width / step)
    if isinstance(scale, scales.Log):
        shift = scale.shift - math.log(step)
        return Log((scale.offset - first) / step, scale.sign, shift, scale.width)
    if isinstance(scale, scales.Asinh):
        return Asinh((scale.centre - first) / step, scale.unit / step, scale.width)
    if isinstance(scale, scales.Logit):
        return Logit(-first / step, (1 - first) / step, scale.shift, scale.width)
    raise TypeError(f"there is no curve for the scale {scale}.")


def separable(scale: scales.Scale, grid: Grid, base: int, count: int) -> bool:
    """Returns whether float32 tells the edges of all cells apart, with room to spare."""
    import torch

    k = torch.arange(count + 1, dtype=torch.float64) - 0.5
    edges = curve(scale, grid, base).at(k).numpy()
    if not np.isfinite(edges).all():
        return False
    room = LEAST_ULPS * np.spacing(np.abs(edges).astype(np.float32)).astype(np.float64)
    return bool((np.diff(edges) > np.maximum(room[1:], room[:-1])).all())
