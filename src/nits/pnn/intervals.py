"""The share of each unit's rise between two points s < t, to full relative precision.

It is (7) over (7), the rise between the points over that on the whole support,

    σ(z_t) / σ(z_B) · σ(−z_s) / σ(−z_A) · κ(h) / κ(D),    h = z_t − z_s = D g,

and `nits.pnn.network` knows the ratios of σ. Here is the ratio of κ, which needs care where units
are flat (D small), and (11), which replaces the product where they are steep (D large).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nits.pnn.logistic import kappa, log_kappa, straight

if TYPE_CHECKING:
    from nits.pnn.network import Normalized, Point, Units


def first_log_share(
    pnn: Normalized, points: tuple[Tensor, Tensor], start: Point, end: Point
) -> Tensor:
    """Returns the log shares of the first layer, h = W (t − s), between points (s, t), shapes (*).

    start, end: The layer at s and at t. Where s ≥ t the result is finite and has no meaning.
    """
    s, t = points
    W, units = pnn.first.weight, pnn.first.units
    infinite, open_support = torch.isinf(t - s), torch.isinf(pnn.high - pnn.low)
    width = torch.where((s >= t) | infinite, torch.ones_like(s), t - s)
    support = (pnn.high - pnn.low).masked_fill(open_support, 1.0)
    log_shrink = _log_shrink(units, torch.log(width / support), torch.log(W) + torch.log(width))
    log_shrink = torch.where(infinite, -torch.log(units.shrink), log_shrink)
    return end.log_fall + start.log_climb + log_shrink


def deep_log_share(units: Units, log_g: Tensor, start: Point, end: Point) -> Tensor:
    """Returns the log shares of a deeper layer, given log g, those of its inputs' rises."""
    log_shrink = _log_shrink(units, log_g, torch.log(units.width) + log_g)
    log_share = end.log_fall + start.log_climb + log_shrink
    return _telescoping(log_share, units, start, end)


def _log_shrink(units: Units, log_g: Tensor, log_h: Tensor) -> Tensor:
    """Returns log(κ(h) / κ(D)) for h = D g.

    With φ(h) = κ(h) / h it is also log g + log φ(h) − log φ(D), in which nothing large cancels for
    D < 1.
    """
    flat = units.width < 1
    h = torch.exp(log_h)
    D = torch.where(flat, units.width, torch.ones_like(units.width))
    small = ~flat | (h < straight(h.dtype))
    h = torch.where(small, torch.ones_like(h), h)
    log_phi = torch.where(small, torch.zeros_like(h), torch.log(kappa(h) / h))
    log_ratio = log_g + log_phi - torch.log(kappa(D) / D)
    return torch.where(flat, log_ratio, log_kappa(log_h) - torch.log(units.shrink))


def _telescoping(log_share: Tensor, units: Units, start: Point, end: Point) -> Tensor:
    """Returns the log shares, those of steep units as plain differences, equation (11).

    A steep unit magnifies the rounding of its input by its width D, so that two intervals would
    disagree about the point where they meet. Where the share exceeds 1/D, the plain difference of
    two shares is as accurate as these are, and sums of it telescope; smaller shares need (7).
    """
    upper = start.below > start.above
    difference = torch.where(upper, start.above - end.above, end.below - start.below)
    plain = torch.maximum(difference, torch.exp(log_share)) * units.width > 1
    plain = plain & (units.width > 1) & (difference > 0)
    return torch.where(plain, torch.log(torch.where(plain, difference, 1.0)), log_share)
