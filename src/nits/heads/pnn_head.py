"""What columns share whose conditionals are PNNs."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from nits import kernels
from nits.heads import hats
from nits.heads.head import Given, Head
from nits.pnn.plain import parameters


class PNNHead(Head):
    """A column whose value is a point of [low, high], or an interval of it, under a PNN."""

    hidden: tuple[int, ...]

    @property
    def weights(self) -> int:
        """P, the number of weights of the PNN."""
        return parameters(self.hidden)

    @property
    def units(self) -> int:
        """Those of the PNN's first layer."""
        return self.hidden[0]

    @property
    def read(self) -> int:
        """The value and its hats."""
        return 1 + self.knots

    @abstractmethod
    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Returns the points of [low, high] that the likelihood of x is made from."""

    @abstractmethod
    def upper(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the point of [low, high] up to which the values ≤ x reach."""

    @abstractmethod
    def value(self, quantile: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns the value that a point of the support [low, high] stands for."""

    @abstractmethod
    def reading(self, x: Tensor) -> Tensor:
        """Returns x on the scale on which the weight model reads it."""

    @property
    @abstractmethod
    def reading_ends(self) -> tuple[float, float]:
        """The least and the greatest number that the weight model may read."""

    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns log ν(x), equation (5), or log P(x), equation (6)."""
        points = self.points(x, given.low, given.high)
        return kernels.log_prob(given.theta, points, given.low, given.high, self.hidden)

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns N(x); for an interval, N at its middle probability."""
        points = self.points(x, given.low, given.high)
        return torch.stack([self._below(given, point) for point in points]).mean(0)

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns N at the point up to which the values ≤ x reach."""
        return self._below(given, self.upper(x, given.low, given.high))

    def _below(self, given: Given, point: Tensor) -> Tensor:
        return kernels.cdf(given.theta, point, given.low, given.high, self.hidden)

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u."""
        x = kernels.quantile(given.theta, u, given.low, given.high, self.hidden)
        return self.value(x, given.low, given.high)

    def features(self, x: Tensor, knots: Tensor) -> Tensor:
        """The value on the scale of the network, and its hats."""
        return hats.features(self.reading(x), knots)

    def even_knots(self) -> Tensor:
        """Evenly spread knots."""
        return hats.even(*self.reading_ends, self.knots)

    def knots_at(self, x: Tensor) -> Tensor:
        """Knots at quantiles of x."""
        return hats.at_quantiles(self.reading(x), self.knots) if len(x) else self.even_knots().to(x)
