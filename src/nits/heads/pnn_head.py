"""What columns share whose conditionals are PNNs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from nits.heads import hats
from nits.heads.head import Given, Head
from nits.kernels import compiled, compiled_quantile, native
from nits.pnn import network, roots
from nits.pnn.plain import parameters

PNNS_AT_ONCE = 8192
"""How many PNNs are evaluated side by side: enough to be quick, few enough for the cache."""


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

    @property
    @abstractmethod
    def kernel(self) -> tuple[object, ...]:
        """What two heads must share to be evaluated by the same compiled kernel."""

    @abstractmethod
    def points(self, x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
        """Returns the points of [low, high] that the likelihood of x is made from."""

    @abstractmethod
    def log_mass(self, at: network.Normalized, points: tuple[Tensor, ...]) -> Tensor:
        """Returns the log-probability or log-density of values given as points in the support."""

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

    def log_prob(self, given: Given, x: Tensor) -> Tensor:
        """Returns log ν(x), equation (5), or log P(x), equation (6)."""
        points = self.points(x, given.low, given.high)
        if x.dim() == 2 and x.shape[1] > 1:
            theta = given.theta.expand(-1, *x.shape).movedim(0, 1)
            if given.kernels.native and native.usable(theta):
                return native.log_prob(theta, points, given.low, given.high, self.hidden)
            if given.kernels.compiled:
                return compiled.log_prob(self, theta, points, given.low, given.high)
        return _by_columns(self, self.log_mass, given, points)

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns N(x); for an interval, N at its middle probability."""
        return _by_columns(self, _below, given, self.points(x, given.low, given.high))

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns N at the point up to which the values ≤ x reach."""
        return _by_columns(self, _below, given, (self.upper(x, given.low, given.high),))

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u."""
        theta, low, high, kernels = given
        own = kernels.native and native.usable(theta)
        if u.dim() == 1 and (own or kernels.compiled):
            x = compiled_quantile.quantile(
                theta.expand(-1, len(u)), u, low, high, self.hidden, own=own
            )
        else:
            x = roots.quantile(network.normalized(theta, low, high, self.hidden), u, 1 - u)
        return self.value(x, low, high)

    def features(self, x: Tensor, knots: Tensor) -> Tensor:
        """The value on the scale of the network, and its hats."""
        return hats.features(self.reading(x), knots)

    def even_knots(self) -> Tensor:
        """Evenly spread knots."""
        return hats.even(*self.reading_ends, self.knots)

    def knots_at(self, x: Tensor) -> Tensor:
        """Knots at quantiles of x."""
        return hats.at_quantiles(self.reading(x), self.knots) if len(x) else self.even_knots().to(x)


def _below(at: network.Normalized, points: tuple[Tensor, ...]) -> Tensor:
    return sum((network.cdf(at, point)[0] for point in points), start=torch.zeros(())) / len(points)


def _by_columns(
    head: PNNHead,
    function: Callable[[network.Normalized, tuple[Tensor, ...]], Tensor],
    given: Given,
    points: tuple[Tensor, ...],
) -> Tensor:
    """Evaluates a few columns at a time, so that the PNNs at work stay in the cache."""
    theta, low, high, _ = given
    if points[0].dim() < 2:
        return function(network.normalized(theta, low, high, head.hidden), points)
    group = max(1, PNNS_AT_ONCE // max(points[0].shape[1], 1))
    parts = []
    for start in range(0, len(points[0]), group):
        some = slice(start, start + group)
        at = network.normalized(theta[:, some], low[some], high[some], head.hidden)
        parts.append(function(at, tuple(point[some] for point in points)))
    return torch.cat(parts)
