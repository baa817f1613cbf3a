"""A column of integers, whose probabilities are a PNN's masses of unit intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from nits import checks
from nits.heads.head import PNNHead
from nits.pnn import initial
from nits.pnn.binned import IntegerPNN
from nits.pnn.integers import Integers


@dataclass(frozen=True)
class Integer(PNNHead):
    """Integers k: the PNN's mass of an interval of width 1/scale around (k − shift)/scale.

    least, greatest: The first and the last possible integer; they may be infinite, and are by
        default.
    shift, scale: A location and a scale of the column, by which it is standardized.
    hidden: Widths of the PNN's hidden layers; the paper's by default, see `Continuous`.

    >>> import nits
    >>> model = nits.NITS.independent([nits.heads.Integer(least=0, shift=5.0, scale=2.0)])
    >>> bool((model.sample(100) >= 0).all())
    True
    """

    least: float = -math.inf
    greatest: float = math.inf
    shift: float = 0.0
    scale: float = 1.0
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.integers(self.least, self.greatest)
        checks.scale(self.scale)

    @property
    def integers(self) -> Integers:
        """The possible integers, and where they lie on the scale of the PNN."""
        return Integers(self.least, self.greatest, self.shift, self.scale)

    @property
    def low(self) -> float:  # type: ignore[override]
        """The lower end of the least integer's interval, on the scale of the PNN."""
        return self.integers.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """The upper end of the greatest integer's interval."""
        return self.integers.high

    @property
    def kind(self) -> tuple[object, ...]:
        """Integer heads with the same hidden layers, range and scale are evaluated together."""
        return ("integer", self.hidden, self.least, self.greatest, self.shift, self.scale)

    @property
    def discrete(self) -> bool:
        """Whether values are integers: they are."""
        return True

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the interval."""
        return self.integers.edges(x, low, high)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of the interval of ⌊x⌋."""
        return self.integers.reach(x, low, high)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer from least to greatest."""
        return self.integers.possible(x)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the integer whose interval the point falls into."""
        return self.integers.containing(quantile)

    def reading(self, x: Tensor) -> Tensor:
        """The integer, shifted and scaled."""
        return (x - self.shift) / self.scale

    @property
    def reading_ends(self) -> tuple[float, float]:
        """The ends of the support."""
        return self.low, self.high

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> IntegerPNN:
        """Returns the distribution over the integers with weights theta."""
        return IntegerPNN(theta, self.integers, self.hidden)

    def placed(self, x: Tensor) -> Tensor:
        """Returns points that are spread over the intervals of x."""
        return (initial.spread_out(x) - 0.5 - self.shift) / self.scale
