"""Mean and variance of a PNN by quadrature between its own quantiles."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nits.pnn import network, roots
from nits.pnn.network import Normalized

CELLS = 256
NODES = 8


def mean_and_variance(at: Normalized) -> tuple[Tensor, Tensor]:
    """Returns E X and Var X; at's batch ends in a dimension of size one, and so do they.

    By parts about the median c, with the increasing, bounded N in place of the density:

        E X − c = ∫_{x>c} (1 − N) dx − ∫_{x<c} N dx
        E (X − c)² = ∫_{x>c} 2 (x − c) (1 − N) dx + ∫_{x<c} 2 (c − x) N dx                   (14)

    The knots of the quadrature are quantiles, so the error of a cell is a fraction of its mass
    times its width. They are even in logit u, the outermost beyond 1 − 10⁻¹⁵; the tails beyond them
    are left out.
    """
    x, weights, median = _nodes(at)
    below, above = (t.unflatten(-1, x.shape[-2:]) for t in network.cdf(at, x.flatten(-2)))
    distance = x - median.unsqueeze(-1)
    right = distance > 0
    tails = weights * torch.where(right, above, below)
    shift = torch.where(right, tails, -tails).sum((-2, -1)).unsqueeze(-1)
    square = (2 * distance.abs() * tails).sum((-2, -1)).unsqueeze(-1)
    # The mean is within a standard deviation of the median, so that at most one bit is lost here.
    return median + shift, square - shift**2


def _nodes(at: Normalized) -> tuple[Tensor, Tensor, Tensor]:
    """Returns points and weights for integrals over the support, shapes (*, CELLS, NODES), and the median."""
    t = torch.linspace(-35.0, 35.0, CELLS + 1, dtype=at.low.dtype, device=at.low.device)
    shape = (*at.low.shape[:-1], CELLS + 1)
    knots = roots.quantile(at, torch.sigmoid(t).expand(shape), torch.sigmoid(-t).expand(shape))
    nodes, weights = (torch.as_tensor(a, dtype=t.dtype, device=t.device) for a in _gauss())
    width = knots.diff().unsqueeze(-1)
    x = knots[..., :-1].unsqueeze(-1) + width * nodes
    return x, width * weights, knots[..., CELLS // 2 : CELLS // 2 + 1]


def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2
