"""What cells are to a PNN: k = 0 … K − 1 is the interval from edge e_k to edge e_{k+1}.

The counterpart of `integers` where cells are uneven; the same functions of tensors. The edges are
computed once, in float64, and rounded to the dtype of the values, so that neighbouring cells share
their edge to the last digit and their masses sum to one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nits.pnn.curves import Curve


class Edges(ABC):
    """The edges e_0 < e_1 < … < e_K of K cells that tile [e_0, e_K].

    Arguments low and high are e_0 and e_K as tensors, which gradients may pass through.
    """

    count: int

    @abstractmethod
    def computed(self) -> Tensor:
        """Returns the edges in float64, shape (K + 1,)."""

    def __post_init__(self) -> None:
        _check(self.exact)

    @cached_property
    def exact(self) -> Tensor:
        """The edges in float64, shape (K + 1,)."""
        return self.computed()

    @cached_property
    def _rounded(self) -> dict[tuple[torch.dtype, torch.device], Tensor]:
        return {}

    def table(self, like: Tensor) -> Tensor:
        """Returns the edges in the dtype and on the device of a tensor, shape (K + 1,)."""
        if torch.compiler.is_compiling():  # what is made while tracing must not be kept
            return self.exact.to(like)
        where = (like.dtype, like.device)
        if where not in self._rounded:
            self._rounded[where] = self.exact.to(like)
        return self._rounded[where]

    @property
    def low(self) -> float:
        """e_0, the lower end of the support."""
        return float(self.exact[0])

    @property
    def high(self) -> float:
        """e_K, the upper end of the support."""
        return float(self.exact[-1])

    @property
    def least(self) -> int:
        """The first cell."""
        return 0

    @property
    def greatest(self) -> int:
        """The last cell."""
        return self.count - 1

    def possible(self, k: Tensor) -> Tensor:
        """Returns whether k is a cell: an integer in 0 … K − 1."""
        return (k >= 0) & (k < self.count) & (k == k.floor())

    def upper_edge(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of k, which may lie between two cells; of the last, high."""
        table = self.table(k)
        position = torch.nan_to_num(k + 1).clamp(0, self.count)
        i = position.floor().clamp(max=self.count - 1)
        start, end = table[i.long()], table[i.long() + 1]
        edge = torch.where(k >= self.greatest, high, torch.lerp(start, end, position - i))
        edge = torch.where(k <= -1, low, edge)
        return edge.masked_fill(torch.isnan(k), torch.nan)

    def edges(self, k: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both edges of cell k; of what is none those of cell 0, and NaN of NaN."""
        table, possible = self.table(k), self.possible(k)
        i = torch.where(possible, k, 0).long()
        lower = torch.where(i == 0, low, table[i])
        upper = torch.where(i == self.count - 1, high, table[i + 1])
        missing = torch.isnan(k)
        return lower.masked_fill(missing, torch.nan), upper.masked_fill(missing, torch.nan)

    def reach(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns how far the cells up to ⌊k⌋ reach, for any number k: from low to high."""
        return self.upper_edge(k.floor(), low, high)

    def containing(self, x: Tensor) -> Tensor:
        """Returns the cell that x falls into; an edge belongs to the cell below it."""
        found = torch.searchsorted(self.table(x), x.detach().contiguous()) - 1
        return found.clamp(0, self.count - 1).to(x.dtype).masked_fill(torch.isnan(x), torch.nan)

    def centre(self, k: Tensor) -> Tensor:
        """Returns the centre of cell ⌊k⌋, or of the nearest one there is; NaN of NaN."""
        i = torch.nan_to_num(k).clamp(0, self.count - 1).long()
        table = self.table(k)
        return torch.lerp(table[i], table[i + 1], 0.5).masked_fill(torch.isnan(k), torch.nan)


@dataclass(frozen=True)
class ListedEdges(Edges):
    """Edges one by one: K + 1 ascending numbers.

    >>> import nits
    >>> nits.heads.ListedEdges((0.0, 1.0, 2.5)).count
    2
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        super().__post_init__()

    @property
    def count(self) -> int:  # type: ignore[override]
        """K, the number of cells."""
        return len(self.values) - 1

    def computed(self) -> Tensor:
        """Returns the values."""
        return torch.tensor(self.values, dtype=torch.float64)


@dataclass(frozen=True)
class CurvedEdges(Edges):
    """Edges along a curve: e_k = curve(k − ½) for k = 0 … count.

    >>> import nits
    >>> from nits.pnn.curves import Line
    >>> nits.heads.CurvedEdges(10, Line(0.0, 0.5)).count
    10
    """

    count: int
    curve: Curve

    def computed(self) -> Tensor:
        """Returns the points of the curve halfway between neighbouring integers."""
        return self.curve.at(torch.arange(self.count + 1, dtype=torch.float64) - 0.5)


def _check(edges: Tensor) -> None:
    rising = torch.isfinite(edges[1:]) & (edges[1:] > edges[:-1])
    if len(edges) < 2 or not bool(torch.isfinite(edges[0]) & rising.all()):
        raise ValueError(
            "edges must be two or more finite numbers in ascending order, but "
            f"{_fault(edges, rising)}; list every edge once, or let the curve start below −½."
        )


def _fault(edges: Tensor, rising: Tensor) -> str:
    """Returns the words for what is wrong with edges."""
    if len(edges) < 2:
        return f"there is {len(edges)}" if len(edges) else "there is none"
    if not bool(torch.isfinite(edges[0])):
        return f"the first is {float(edges[0]):g}"
    i = int((~rising).nonzero()[0])
    return f"{float(edges[i]):g} is followed by {float(edges[i + 1]):g}"
