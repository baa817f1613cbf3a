"""The PNN as the paper has it, formula by formula: start reading here.

A PNN is an increasing function F of one variable x, a small network with positive weights. Its
slope F′, divided by the rise of F over the support, is a density that integrates to one, and F
itself is, up to shift and scale, the distribution function. Numbers in brackets are those of
docs/maths.md.

The weights come first and the batch last: θ has shape (P, *), a layer of h units (h, *), a matrix
(out, in, *), a point x (*).

Subtracting values of F loses digits where they are close; `nits.pnn.network` computes the same
without that loss. This version is what tests compare it with, and what benchmarks time it against.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

Theta = Tensor | Sequence[Tensor]  # θ whole, or in the parts that `sizes` counts

LOG_WEIGHT_BOUND = 20.0  # weights W stay in (e⁻²⁰, e²⁰), which float32 can hold


class PlainPNN:
    """A PNN on the support [low, high], the paper's [A, B], either end of which may be infinite.

    theta: Weights, shape (P, *).
    low, high: Ends of the support; like the weights they broadcast to the shape (*) of the points.
    hidden: Widths of the hidden layers.
    """

    def __init__(self, theta: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]) -> None:
        layers, last = unpack(theta, hidden)
        self.low, self.high = low, high
        self.layers = [(torch.exp(log_weights(A)), b) for A, b in layers]  # (W, b) of each
        self.w = torch.softmax(last, 0)

    def F(self, x: Tensor) -> Tensor:
        """Returns the value of the network at x, equations (1)–(3).

            z_j = Σ_i W_ji (a_i − b_j),   a_j = σ(z_j)   in each layer, the first of which reads x,
            F(x) = Σ_i w_i a_i                           from the last.

        At x = ±∞ the first layer is σ(±∞), constants 1 or 0, so that no gradient becomes NaN.
        """
        (W, b), *deep = self.layers
        infinite = torch.isinf(x)
        z = W * (x.masked_fill(infinite, 0.0) - b)
        a = torch.where(infinite, (x > 0).to(z.dtype), torch.sigmoid(z))
        for W, b in deep:
            z = (W * (a - b.unsqueeze(1))).sum(1)
            a = torch.sigmoid(z)
        return (self.w * a).sum(0)

    def slope(self, x: Tensor) -> Tensor:
        """Returns F′(x) > 0, by autograd."""
        recorded = torch.is_grad_enabled()
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.F(x).sum(), x, create_graph=recorded)
        return slope

    def Z(self) -> Tensor:
        """Returns Z = F(B) − F(A), which is the integral of F′ over the support."""
        return self.F(self.high) - self.F(self.low)

    def cdf(self, x: Tensor) -> Tensor:
        """Returns N(x) = (F(x) − F(A)) / Z, equation (4), for x in the support."""
        return (self.F(x) - self.F(self.low)) / self.Z()

    def log_density(self, x: Tensor) -> Tensor:
        """Returns log ν(x) = log F′(x) − log Z, equation (5), for x in the support."""
        return torch.log(self.slope(x)) - torch.log(self.Z())

    def log_mass(self, s: Tensor, t: Tensor) -> Tensor:
        """Returns log P(s < X ≤ t) = log (F(t) − F(s)) − log Z, equation (6)."""
        return torch.log(self.F(t) - self.F(s)) - torch.log(self.Z())

    @torch.no_grad()
    def quantile(self, u: Tensor, steps: int = 64) -> Tensor:
        """Returns x with N(x) = u, 0 < u < 1, by bisection.

        It runs in y = arsinh x, where 80 is as good as infinite: sinh 80 ≈ 3·10³⁴.
        """
        left = torch.asinh(self.low).clamp_min(-80.0).expand_as(u)
        right = torch.asinh(self.high).clamp_max(80.0).expand_as(u)
        for _ in range(steps):
            y = (left + right) / 2
            below = self.cdf(torch.sinh(y)) < u
            left, right = torch.where(below, y, left), torch.where(below, right, y)
        return torch.sinh((left + right) / 2)


def parameters(hidden: Sequence[int]) -> int:
    """Returns P, the number of weights of a PNN with these hidden layers: 320 for (16, 16)."""
    return sum(sizes(hidden))


def sizes(hidden: Sequence[int]) -> list[int]:
    """Returns the sizes of the parts of θ = (A¹, b¹, …, Aᴸ, bᴸ, Aᴸ⁺¹), which follow one another."""
    return [size for fan_in, h in pairwise((1, *hidden)) for size in (fan_in * h, h)] + [hidden[-1]]


def unpack(theta: Theta, hidden: Sequence[int]) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Returns (A, b) of each hidden layer, A of shape (h, *) or (out, in, *), and the last A."""
    *parts, last = theta.split(sizes(hidden)) if isinstance(theta, Tensor) else theta
    first, *deep = zip(parts[::2], parts[1::2], strict=True)
    return [first, *((A.unflatten(0, (b.shape[0], -1)), b) for A, b in deep)], last


def log_weights(A: Tensor) -> Tensor:
    """Returns log W = −A / √(1 + (A/20)²): the −A of equation (1), bent to stay within ±20."""
    return -A * torch.rsqrt(1 + (A * (1 / LOG_WEIGHT_BOUND)) ** 2)
