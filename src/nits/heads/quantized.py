"""A column of equal bins, such as 8-bit pixels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nits import checks
from nits.heads.head import PNNHead
from nits.pnn import bins, initial
from nits.pnn.binned import QuantizedPNN


@dataclass(frozen=True)
class Quantized(PNNHead):
    """An integer column 0 … bins − 1: the probabilities of equal bins that tile [low, high].

    hidden: Widths of the PNN's hidden layers; the paper's by default, see `Continuous`.

    >>> import nits
    >>> grey = nits.heads.Quantized(low=0.0, high=1.0, bins=16)
    >>> set(nits.NITS.independent([grey]).sample(50)[:, 0].tolist()) <= set(range(16))
    True
    """

    low: float
    high: float
    bins: int
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high, finite=True)
        checks.bins(self.bins)

    @property
    def kind(self) -> tuple[object, ...]:
        """Quantized heads with the same hidden layers and bins are evaluated together."""
        return ("quantized", self.hidden, self.bins)

    @property
    def discrete(self) -> bool:
        """Whether values are integers: they are."""
        return True

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the bin."""
        return bins.edges(x, low, high, self.bins)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of the bin ⌊x⌋."""
        return bins.reach(x, low, high, self.bins)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer in 0 … bins − 1."""
        return bins.possible(x, self.bins)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the bin that the point falls into."""
        return bins.containing(quantile, low, high, self.bins)

    def reading(self, x: Tensor) -> Tensor:
        """The middle of the bin, on a scale from −1 to 1."""
        return (2 * x + 1) / self.bins - 1

    @property
    def reading_ends(self) -> tuple[float, float]:
        """From −1 to 1."""
        return -1.0, 1.0

    def distribution(
        self, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> QuantizedPNN:
        """Returns the quantized PNN with weights theta."""
        return QuantizedPNN(theta, low, high, self.bins, self.hidden)

    def placed(self, x: Tensor) -> Tensor:
        """Returns points that are spread over the bins x."""
        return self.low + (self.high - self.low) * (initial.spread_out(x) / self.bins)
