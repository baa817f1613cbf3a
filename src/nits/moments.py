"""Mean and variance of a PNN by quadrature between its own quantiles."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nits import pnn, roots
from nits.pnn import Frame

CELLS = 256
NODES = 8


def mean_and_variance(at: Frame) -> tuple[Tensor, Tensor]:
    """Returns E X and Var X; at's batch ends in a dimension of size one, and so do they.

    With quantiles x_k as knots, integration by parts in each cell leaves only the increasing, bounded N:

        ∫ (x − c)ᵖ ν dx = [(x − c)ᵖ N] − ∫ p (x − c)ᵖ⁻¹ N dx                              (14)

    so the error of a cell is a fraction of its mass times its width. The knots are even in logit u, which
    puts the outermost beyond 1 − 10⁻¹⁵; the tails beyond them are left out.
    """
    t = torch.linspace(-35.0, 35.0, CELLS + 1, dtype=at.low.dtype, device=at.low.device)
    shape = (*at.low.shape[:-1], CELLS + 1)
    knots = roots.quantile(at, torch.sigmoid(t).expand(shape), torch.sigmoid(-t).expand(shape))
    left, width = knots[..., :-1], knots.diff()
    nodes, weights = (torch.as_tensor(a, dtype=t.dtype, device=t.device) for a in _gauss())
    x = left.unsqueeze(-1) + width.unsqueeze(-1) * nodes  # (*, cells, nodes)
    below = pnn.cdf(at, x.flatten(-2))[0].unflatten(-1, x.shape[-2:])
    weights = width.unsqueeze(-1) * weights
    top = knots[..., -1:]
    mean = top - (weights * below).sum((-2, -1)).unsqueeze(-1)
    # Centred at the mean, so that the square of a large mean does not swamp the variance.
    centred = x - mean.unsqueeze(-1)
    variance = (top - mean) ** 2 - (2 * weights * centred * below).sum((-2, -1)).unsqueeze(-1)
    return mean, variance


def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2
