"""A slow, obviously right PNN: equations (1)–(6) unit by unit, with plain differences and autograd slopes.

`PlainPNN` works in whatever dtype it is given and loses digits where F is flat or steep; `ExactPNN`
does the same sums in 50 digits, of one PNN at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import torch
from torch import Tensor

BOUND = 20  # of log W


@dataclass
class PlainPNN:
    """theta: shape (*, P). low, high: broadcast to (*). Points have shape (*)."""

    theta: Tensor
    low: Tensor
    high: Tensor
    hidden: Sequence[int] = (16, 16)

    def F(self, x: Tensor) -> Tensor:
        """Equations (1)–(3), one unit after the other."""
        weights = iter(self.theta.unbind(-1))
        a = [x]
        for h in self.hidden:
            W = [[torch.exp(_log_weight(next(weights))) for _ in a] for _ in range(h)]
            b = [next(weights) for _ in range(h)]
            z = [
                sum(w * (a_i - b_j) for w, a_i in zip(W_j, a, strict=True))
                for W_j, b_j in zip(W, b, strict=True)
            ]
            a = [torch.sigmoid(torch.as_tensor(z_j)) for z_j in z]
        w = torch.softmax(torch.stack(list(weights)), 0)
        return (w * torch.stack(a)).sum(0)

    def rise(self) -> Tensor:
        return self.F(self.high) - self.F(self.low)

    def cdf(self, x: Tensor) -> Tensor:
        return (self.F(x) - self.F(self.low)) / self.rise()

    def log_prob(self, x: Tensor) -> Tensor:
        if not x.requires_grad:
            x = x.detach().requires_grad_()
        with torch.enable_grad():
            F = self.F(x)
            (slope,) = torch.autograd.grad(F.sum(), x, create_graph=True)
        return torch.log(slope / self.rise())

    def log_mass(self, s: Tensor, t: Tensor) -> Tensor:
        return torch.log((self.F(t) - self.F(s)) / self.rise())

    def icdf(self, u: Tensor, evaluations: int = 60) -> Tensor:
        """Bisection of a finite support."""
        left, right = self.low.expand_as(u).clone(), self.high.expand_as(u).clone()
        for _ in range(evaluations):
            middle = (left + right) / 2
            below = self.cdf(middle) < u
            left, right = torch.where(below, middle, left), torch.where(below, right, middle)
        return (left + right) / 2


def _log_weight(A: Tensor) -> Tensor:
    return -A / torch.sqrt(1 + (A / BOUND) ** 2)


@dataclass
class ExactPNN:
    """theta: shape (P,), read exactly. low, high and points are numbers, read exactly."""

    theta: Tensor
    low: float
    high: float
    hidden: Sequence[int] = (16, 16)
    digits: int = 50

    def F(self, x: Any) -> tuple[Any, Any]:
        """Returns F(x) and F′(x)."""
        weights = iter([mpmath.mpf(w) for w in self.theta.tolist()])
        a, slope = [mpmath.mpf(x)], [mpmath.mpf(1)]
        for h in self.hidden:
            W = [[mpmath.exp(_exact_log_weight(next(weights))) for _ in a] for _ in range(h)]
            b = [next(weights) for _ in range(h)]
            z = [
                sum(w * (a_i - b_j) for w, a_i in zip(W_j, a, strict=True))
                for W_j, b_j in zip(W, b, strict=True)
            ]
            a = [_sigmoid(z_j) for z_j in z]
            slope = [
                a_j * (1 - a_j) * sum(w * s for w, s in zip(W_j, slope, strict=True))
                for W_j, a_j in zip(W, a, strict=True)
            ]
        w = [mpmath.exp(last) for last in weights]
        return mpmath.fdot(w, a) / sum(w), mpmath.fdot(w, slope) / sum(w)

    def rise(self) -> Any:
        return self.F(self.high)[0] - self.F(self.low)[0]

    def cdf(self, x: float) -> float:
        with mpmath.workdps(self.digits):
            return float((self.F(x)[0] - self.F(self.low)[0]) / self.rise())

    def survival(self, x: float) -> float:
        with mpmath.workdps(self.digits):
            return float((self.F(self.high)[0] - self.F(x)[0]) / self.rise())

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
