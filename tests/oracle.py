"""A slow PNN in 50 digits: equations (1)–(6) unit by unit, for one PNN and one point at a time.

`nits.pnn.plain` is the same in floating-point numbers, for batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import mpmath
from torch import Tensor

BOUND = 20  # of log W


@dataclass
class ExactPNN:
    """theta: shape (P,), read exactly. low, high and points are numbers, read exactly."""

    theta: Tensor
    low: float
    high: float
    hidden: Sequence[int] = (16, 16)
    digits: int = 50

    @cached_property
    def layers(self) -> tuple[list[tuple[Any, Any]], Any]:
        """W and b of each hidden layer, and the last weights."""
        with mpmath.workdps(self.digits):
            weights = iter([mpmath.mpf(w) for w in self.theta.tolist()])
            layers = [
                (
                    [
                        [mpmath.exp(_exact_log_weight(next(weights))) for _ in range(n)]
                        for _ in range(h)
                    ],
                    [next(weights) for _ in range(h)],
                )
                for n, h in pairwise((1, *self.hidden))
            ]
            return layers, [mpmath.exp(last) for last in weights]

    def F(self, x: Any) -> tuple[Any, Any]:
        """Returns F(x) and F′(x)."""
        layers, w = self.layers
        a, slope = [mpmath.mpf(x)], [mpmath.mpf(1)]
        for W, b in layers:
            z = [
                sum(w * (a_i - b_j) for w, a_i in zip(W_j, a, strict=True))
                for W_j, b_j in zip(W, b, strict=True)
            ]
            a = [_sigmoid(z_j) for z_j in z]
            slope = [
                a_j * (1 - a_j) * sum(w * s for w, s in zip(W_j, slope, strict=True))
                for W_j, a_j in zip(W, a, strict=True)
            ]
        return mpmath.fdot(w, a) / sum(w), mpmath.fdot(w, slope) / sum(w)

    @cached_property
    def ends(self) -> tuple[Any, Any]:
        """F at both ends of the support."""
        with mpmath.workdps(self.digits):
            return self.F(self.low)[0], self.F(self.high)[0]

    def rise(self) -> Any:
        return self.ends[1] - self.ends[0]

    def cdf(self, x: float) -> float:
        with mpmath.workdps(self.digits):
            return float((self.F(x)[0] - self.ends[0]) / self.rise())

    def survival(self, x: float) -> float:
        with mpmath.workdps(self.digits):
            return float((self.ends[1] - self.F(x)[0]) / self.rise())

    def log_prob(self, x: float) -> float:
        with mpmath.workdps(self.digits):
            return float(mpmath.log(self.F(x)[1] / self.rise()))

    def log_mass(self, s: float, t: float) -> float:
        with mpmath.workdps(self.digits):
            return float(mpmath.log((self.F(t)[0] - self.F(s)[0]) / self.rise()))


def _exact_log_weight(A: Any) -> Any:
    return -A / mpmath.sqrt(1 + (A / BOUND) ** 2)


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + mpmath.exp(-z))
