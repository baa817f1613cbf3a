"""Where training starts: PNN weights that follow a column's quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from nits.pnn.plain import LOG_WEIGHT_BOUND

SMOOTHING = 1.5
"""Width of a first-layer unit, in gaps between the centres."""


def from_quantiles(x: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns θ, shape (P,), of a PNN that follows the distribution of x, shape (N,).

    The centres of the first layer's h units are the quantiles (i + ½)/h, and each unit is about as
    wide as the gaps to its neighbours, so that their mean is a smooth version of the cdf. Every
    unit of a later layer reads the plain mean of the layer below and has its centre at (j + ½)/h:
    the mean of these steps over [0, 1] is close to the identity.
    """
    h = hidden[0]
    levels = (torch.arange(h, dtype=x.dtype, device=x.device) + 0.5) / h
    centres = quantiles(x, levels)
    # A logistic of scale s has density 1 / (4 s) at its centre: that of the data if s = gap / 4.
    log_scale = torch.log(SMOOTHING * _gaps(centres, x) / 4)
    parts = [from_log_weights(-log_scale.clamp(-19.0, 19.0)), centres]
    for fan_in, width in pairwise(hidden):
        steepness = torch.full(
            (width * fan_in,), 4.0 * width / (SMOOTHING * fan_in), dtype=x.dtype, device=x.device
        )
        steps = (torch.arange(width, dtype=x.dtype, device=x.device) + 0.5) / width
        parts += [from_log_weights(torch.log(steepness)), steps]
    return torch.cat([*parts, x.new_zeros(hidden[-1])])


def quantiles(x: Tensor, levels: Tensor) -> Tensor:
    """Returns quantiles of x, shape (N,), by sorting: torch.quantile stops at 16 million values."""
    ordered = x.sort().values
    position = levels * (len(ordered) - 1)
    low = position.floor().long()
    high = (low + 1).clamp_max(len(ordered) - 1)
    return torch.lerp(ordered[low], ordered[high], position - low)


def spread_out(k: Tensor) -> Tensor:
    """Returns integers k, shape (N,), sorted and spread evenly over [k, k + 1)."""
    # Multiples of the golden ratio fill each interval evenly, however many values it holds.
    jitter = (torch.arange(len(k), dtype=torch.float64, device=k.device) * 0.6180339887498949) % 1
    return k.sort().values + jitter.to(k.dtype)


def _gaps(centres: Tensor, x: Tensor) -> Tensor:
    """Returns the mean gap beside each centre; for ties, a small part of the range, never zero."""
    if len(centres) == 1:
        return (x.std(correction=0) * 2.2).clamp_min(1e-3).reshape(1)
    gaps = centres.diff()
    around = torch.cat([gaps[:1], (gaps[1:] + gaps[:-1]) / 2, gaps[-1:]])
    span = (centres[-1] - centres[0]).clamp_min(1e-3)
    return around.clamp_min(1e-2 * span / len(centres))


def from_log_weights(log_weight: Tensor) -> Tensor:
    """Returns A with log W = log_weight, |log_weight| < 20: the inverse of `plain.log_weights`."""
    return -log_weight * torch.rsqrt(1 - (log_weight / LOG_WEIGHT_BOUND) ** 2)
