"""Increasing curves along which the edges of cells lie: from k to the scale of the PNN and back.

Pure functions of float64 tensors. Parameters are in units of k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


class Curve(ABC):
    """An increasing function u = at(k)."""

    @abstractmethod
    def at(self, k: Tensor) -> Tensor:
        """Returns the points u at which numbers k lie, which need not be whole."""

    @abstractmethod
    def back(self, u: Tensor) -> Tensor:
        """Returns the numbers k that lie at points u."""


@dataclass(frozen=True)
class Line(Curve):
    """u = (k − shift) / scale."""

    shift: float
    scale: float

    def at(self, k: Tensor) -> Tensor:
        """Returns k, shifted and scaled."""
        return (k - self.shift) / self.scale

    def back(self, u: Tensor) -> Tensor:
        """Returns u · scale + shift."""
        return u * self.scale + self.shift


@dataclass(frozen=True)
class Log(Curve):
    """u = ±(log(±(k − offset)) − shift) / width, for k above the offset, or below it.

    sign: +1 for k above the offset, −1 for the mirror image.
    """

    offset: float
    sign: int
    shift: float
    width: float

    def at(self, k: Tensor) -> Tensor:
        """Returns the logarithm of the distance from the offset, shifted and scaled."""
        return self.sign * (torch.log(self.sign * (k - self.offset)) - self.shift) / self.width

    def back(self, u: Tensor) -> Tensor:
        """Returns offset ± exp(±u · width + shift)."""
        return self.offset + self.sign * torch.exp(self.sign * u * self.width + self.shift)


@dataclass(frozen=True)
class Asinh(Curve):
    """u = asinh((k − centre) / unit) / width: straight near the centre, logarithmic far from it."""

    centre: float
    unit: float
    width: float

    def at(self, k: Tensor) -> Tensor:
        """Returns the inverse hyperbolic sine of the distance from the centre."""
        return torch.asinh((k - self.centre) / self.unit) / self.width

    def back(self, u: Tensor) -> Tensor:
        """Returns centre + unit · sinh(u · width)."""
        return self.centre + self.unit * torch.sinh(u * self.width)


@dataclass(frozen=True)
class Logit(Curve):
    """u = (log(k − low) − log(high − k) − shift) / width, for k strictly between low and high."""

    low: float
    high: float
    shift: float
    width: float

    def at(self, k: Tensor) -> Tensor:
        """Returns the logarithm of the ratio of the distances from both ends."""
        return (torch.log(k - self.low) - torch.log(self.high - k) - self.shift) / self.width

    def back(self, u: Tensor) -> Tensor:
        """Returns low + (high − low) σ(u · width + shift)."""
        return self.low + (self.high - self.low) * torch.sigmoid(u * self.width + self.shift)
