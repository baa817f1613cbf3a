"""Sums and integrals over a conditional distribution."""

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from laws.density import atoms, values
from nits.heads import Head

SPREAD = 1.349
"""The quartiles of a Gaussian lie this many deviations apart."""

REACH = 5.3
"""How far t goes: to sinh(5.3) = 100 deviations."""


def quadrature(distribution: Distribution, head: Head, nodes: int = 500) -> tuple[Tensor, Tensor]:
    """Nodes x and weights w with Σ w ν(x) = ∫ ν, shapes (n, N), for N conditionals of one column.

    The error falls exponentially in the number of nodes. Discrete columns have a node per value,
    atoms one each beside those of the density.
    """
    known = values(head)
    if known is None:
        x, w = _interval(distribution, head, nodes)
        known = atoms(head)
    else:
        x = w = torch.empty(0, *distribution.batch_shape, dtype=torch.float64)
    masses = known.unsqueeze(1).expand(-1, *distribution.batch_shape)
    return torch.cat([masses, x]), torch.cat([torch.ones_like(masses), w])


def _interval(distribution: Distribution, head: Head, nodes: int) -> tuple[Tensor, Tensor]:
    """Gauss–Legendre between finite ends; else the trapezoid rule in t, as ν(x(t)) decays fast."""
    low, high = (torch.tensor(end, dtype=torch.float64) for end in (head.low, head.high))
    one = torch.ones(distribution.batch_shape, dtype=torch.float64)
    if low.isfinite() and high.isfinite():
        x, w = (torch.from_numpy(part)[:, None] for part in np.polynomial.legendre.leggauss(nodes))
        return (low + high + (high - low) * x) / 2 * one, (high - low) / 2 * w * one
    lower, median, upper = (distribution.icdf(level * one).detach() for level in (0.25, 0.5, 0.75))
    t = torch.linspace(-REACH, REACH, nodes, dtype=torch.float64)[:, None] * one
    step = t[1] - t[0]
    if low.isinf() and high.isinf():
        scale = (upper - lower) / SPREAD
        return median + scale * t.sinh(), scale * step * t.cosh()
    end, sign = (low, 1) if low.isfinite() else (high, -1)
    away = (median - end).abs() * torch.exp(t - torch.exp(-t))
    return end + sign * away, step * away * (1 + torch.exp(-t))
