"""A column of cells, each with the PNN's mass between two edges: ordered levels, uneven grids."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nits import checks
from nits.heads.cycles import Cycle
from nits.heads.head import PNNHead
from nits.pnn import initial
from nits.pnn.binned import CellsPNN
from nits.pnn.cells import Edges


@dataclass(frozen=True)
class Cells(PNNHead):
    """An integer column 0 … K − 1: k has the PNN's mass between edges e_k and e_{k+1}.

    edges: K + 1 ascending points on the scale of the PNN, `ListedEdges` or `CurvedEdges`.
    hidden: Widths of the PNN's hidden layers; the paper's by default, see `Continuous`.
    cycles: What the weight model reads of k's place in cycles, such as the weekday.

    >>> import nits, torch
    >>> prices = nits.heads.Cells(nits.heads.ListedEdges((0.0, 1.0, 2.5, 10.0)))  # three cells
    >>> model = nits.NITS.independent([prices])
    >>> round(model.log_prob(torch.arange(3.0)[:, None]).exp().sum().item(), 5)
    1.0
    """

    edges: Edges
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False
    cycles: tuple[Cycle, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        checks.knots(self.knots)

    @property
    def low(self) -> float:  # type: ignore[override]
        """The lower edge of the first cell."""
        return self.edges.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """The upper edge of the last cell."""
        return self.edges.high

    @property
    def least(self) -> int:
        """The first cell."""
        return self.edges.least

    @property
    def greatest(self) -> int:
        """The last cell."""
        return self.edges.greatest

    @property
    def kind(self) -> tuple[object, ...]:
        """Heads with the same hidden layers, edges and cycles are evaluated together."""
        return ("cells", self.hidden, self.edges, self.cycles)

    @property
    def discrete(self) -> bool:
        """Whether values are integers: they are."""
        return True

    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Two points: the edges of the cell."""
        return self.edges.edges(x, low, high)

    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of the cell ⌊x⌋."""
        return self.edges.reach(x, low, high)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an integer in 0 … K − 1."""
        return self.edges.possible(x)

    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the cell that the point falls into."""
        return self.edges.containing(quantile)

    def reading(self, x: Tensor) -> Tensor:
        """The centre of the cell, on the scale of the PNN."""
        return self.edges.centre(x)

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> CellsPNN:
        """Returns the distribution over the cells with weights theta."""
        return CellsPNN(theta, self.edges, self.hidden)

    def placed(self, x: Tensor) -> Tensor:
        """Returns points that are spread over the cells x."""
        ends = (x.new_tensor(end) for end in (self.low, self.high))
        return self.edges.upper_edge(initial.spread_out(x) - 1, *ends)
