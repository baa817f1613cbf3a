"""A real column with a density."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from nits import checks
from nits.heads.cycles import Cycle
from nits.heads.head import PNNHead
from nits.pnn.distributions import PNN


@dataclass(frozen=True)
class Continuous(PNNHead):
    """A real column with a density on [low, high]; the ends may be infinite, and are by default.

    hidden: Widths of the PNN's hidden layers. The default is the paper's; `NITSDensity` and
        `NITSImages` have smaller PNNs, for reasons that they state.
    knots: Number of hat functions of the value that the weight model reads too; 0, or at least 2.
    cycles: What the weight model reads of a value's place in cycles, such as the time of day.

    >>> import nits
    >>> heads = [nits.heads.Continuous(low=0.0), nits.heads.Continuous(knots=16)]
    >>> model = nits.NITS.mlp(heads, hidden=32)
    >>> bool((model.sample(100)[:, 0] >= 0).all())
    True
    """

    low: float = -math.inf
    high: float = math.inf
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False
    cycles: tuple[Cycle, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)
        checks.ends(self.low, self.high)

    @property
    def kind(self) -> tuple[object, ...]:
        """Continuous heads with the same hidden layers and cycles are evaluated together."""
        return ("continuous", self.hidden, self.cycles)

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> PNN:
        """Returns the PNN with weights theta."""
        return PNN(theta, low, high, self.hidden)
