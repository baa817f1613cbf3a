"""An increasing map of [0, 1] onto itself, by which distributions are made narrower or broader."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

LEAST_MASS = 1e-9
"""Probabilities below this are too small to be differences of B, which is straight there."""

CELLS, STEPS, CLOSE = 64, 40, 1e-13
"""Where the inverse of B is sought: in one of so many cells, by so many steps at most, until it is
so close."""


class Curve(NamedTuple):
    """B with slope b(u) = m Σ_k w_k C(m − 1, k) u^k (1 − u)^(m − 1 − k), a mean of bumps.

    Equal weights w make B(u) = u. All of it is computed in float64.
    """

    weights: Tensor

    def at(self, u: Tensor) -> Tensor:
        """Returns B(u), shape (*), of probabilities u."""
        return self._at(u.double()).to(u.dtype)

    def inverse(self, u: Tensor) -> Tensor:
        """Returns the v with B(v) = u: Newton's steps inside an interval that each of them narrows.

        One more of them has the digits left, and the gradient.
        """
        target = u.double()
        with torch.no_grad():
            near = self._near(target)
        found = near - (self._at(near) - target) / self._slope(near).detach()
        inside = found.clamp(0.0, 1.0)
        return torch.where((target <= 0) | (target >= 1), target, inside).to(u.dtype)

    def _near(self, target: Tensor) -> Tensor:
        """Returns v with B(v) close to a target, from the nearest points of a grid on."""
        grid = torch.linspace(0, 1, CELLS + 1, dtype=target.dtype, device=target.device)
        heights = self._at(grid)
        cell = (torch.searchsorted(heights, target.contiguous(), right=True) - 1).clamp(
            0, CELLS - 1
        )
        low, high = grid[cell], grid[cell + 1]
        rise = (heights[cell + 1] - heights[cell]).clamp_min(torch.finfo(target.dtype).tiny)
        v = low + (high - low) * ((target - heights[cell]) / rise).clamp(0.0, 1.0)
        for _ in range(STEPS):
            ahead = self._at(v) - target
            if not bool((ahead.abs() > CLOSE).any()):
                break
            low, high = torch.where(ahead > 0, low, v), torch.where(ahead > 0, v, high)
            step = v - ahead / self._slope(v)
            v = torch.where((step > low) & (step < high), step, (low + high) / 2)
        return v

    def log_slope(self, middle: Tensor, mass: Tensor) -> Tensor:
        """Returns log (B(v + p/2) − B(v − p/2)) / p; where p is zero, log b(v).

        middle, mass: v and p, the probability up to the middle of a value, and that of the value.
        """
        v, half = middle.double(), mass.double() / 2
        low, high = (v - half).clamp(0.0, 1.0), (v + half).clamp(0.0, 1.0)
        wide = high - low > LEAST_MASS
        width = (high - low).masked_fill(~wide, 1.0)
        rise = (self._at(high) - self._at(low)).clamp_min(0.0)  # rounding may make it negative
        mean = (rise / width).masked_fill(~wide, 1.0)
        return torch.where(wide, mean, self._slope(v.clamp(0.0, 1.0))).log().to(middle.dtype)

    def _at(self, u: Tensor) -> Tensor:
        heights = torch.cat([self.weights.new_zeros(1), self.weights.cumsum(0)])
        return _mean(u, heights / heights[-1]).clamp(0.0, 1.0)

    def _slope(self, u: Tensor) -> Tensor:
        return len(self.weights) * _mean(u, self.weights / self.weights.sum())


def _mean(u: Tensor, values: Tensor) -> Tensor:
    """Returns Σ_k values_k C(n, k) u^k (1 − u)^(n − k), shape (*), for n + 1 values.

    Powers by `pow` take ten times as long as these steps for k = 1 … n:

        p ← p (1 − u) + C(n, k) values_k u^k
    """
    n, rest = len(values) - 1, 1 - u
    p, power = values[0] * torch.ones_like(u), torch.ones_like(u)
    for k in range(1, n + 1):
        power = power * u
        p = p * rest + math.comb(n, k) * values[k] * power
    return p
