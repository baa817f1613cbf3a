"""What integers are to a PNN: k is the interval of width 1/scale around (k − shift)/scale.

The counterpart of `bins` where the integers may go on for ever; the same five functions of tensors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Integers:
    """The integers from least to greatest, either of which may be infinite, and where they lie."""

    least: float = -math.inf
    greatest: float = math.inf
    shift: float = 0.0
    scale: float = 1.0

    @property
    def low(self) -> float:
        """The lower end of the least integer's interval, on the scale of the PNN."""
        return (self.least - 0.5 - self.shift) / self.scale

    @property
    def high(self) -> float:
        """The upper end of the greatest integer's interval."""
        return (self.greatest + 0.5 - self.shift) / self.scale

    @property
    def count(self) -> float:
        """How many there are."""
        return self.greatest - self.least + 1

    def possible(self, k: Tensor) -> Tensor:
        """Returns whether k is one of them."""
        return (k >= self.least) & (k <= self.greatest) & (k == k.floor()) & ~torch.isinf(k)

    def upper_edge(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the upper edge of k, which may lie between two integers; of the last, high."""
        edge = torch.where(k >= self.greatest, high, ((k - self.shift) + 0.5) / self.scale)
        return torch.where(k < self.least, low, edge)

    def edges(self, k: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both edges of k; of what is none of them those of one that is, and NaN of NaN."""
        inner = min(max(round(self.shift), self.least), self.greatest)
        k = torch.where(self.possible(k) | torch.isnan(k), k, torch.full_like(k, inner))
        lower = torch.where(k <= self.least, low, ((k - self.shift) - 0.5) / self.scale)
        return lower, self.upper_edge(k, low, high)

    def reach(self, k: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns how far the integers up to ⌊k⌋ reach, for any number k."""
        return self.upper_edge(k.floor(), low, high)

    def containing(self, x: Tensor) -> Tensor:
        """Returns the integer whose interval x falls into."""
        return (x * self.scale + self.shift).round().clamp(self.least, self.greatest)
