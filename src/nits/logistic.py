"""The logistic function σ in forms that lose no digits: its logarithm, its differences, its quantiles."""

from __future__ import annotations

import torch
from torch import Tensor


def positive(z: Tensor) -> Tensor:
    """Returns max(z, 0) with slope 1 at 0, so that `softplus` has slope ½ there."""
    return torch.where(z < 0, torch.zeros_like(z), z)


def tail(z: Tensor) -> Tensor:
    """Returns log(1 + e^−|z|), what softplus(z) has beyond max(z, 0)."""
    return torch.log1p(torch.exp(torch.where(z < 0, z, -z)))


def softplus(z: Tensor) -> Tensor:
    """Returns log(1 + eᶻ) = −log σ(−z), exact for any z, in float64 too."""
    return positive(z) + tail(z)


def log_softplus(z: Tensor) -> Tensor:
    """Returns log softplus(z), which is z itself far to the left."""
    left = z < -40
    return torch.where(left, z, torch.log(softplus(torch.where(left, torch.zeros_like(z), z))))


def softplus_gap(a: Tensor, b: Tensor, gap: Tensor) -> Tensor:
    """Returns softplus(b) − softplus(a) for b = a + gap ≥ a, without cancellation, equation (10).

    For a ≥ 0 the large parts of both differ by exactly the gap.
    """
    return torch.where(a < 0, positive(b), gap) + tail(b) - tail(a)


def kappa(h: Tensor) -> Tensor:
    """Returns κ(h) = 1 − e⁻ʰ to full relative precision.

    Written as tanh(h/2) (1 + e⁻ʰ) because compilers lower expm1(h) to exp(h) − 1.
    """
    return torch.tanh(h / 2) * (1 + torch.exp(-h))


def log_kappa(log_h: Tensor) -> Tensor:
    """Returns log κ(h) from log h: where h is so small that κ(h) = h to rounding, it is log h itself."""
    h = torch.exp(log_h)
    small = h < straight(h.dtype)
    return torch.where(small, log_h, torch.log(kappa(torch.where(small, torch.ones_like(h), h))))


def straight(dtype: torch.dtype) -> float:
    """Returns a width below which κ(h) = h, so that a unit is a straight line to rounding."""
    return 1e-10 if dtype == torch.float32 else 1e-20


def logistic_quantile(logit: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Returns z at which a logistic truncated to [low, high] has odds e^logit, equation (13).

    eᶻ = (e^logit + C e^low) / (C + e^(logit − high)),   C = σ(−low) / σ(high)
    """
    log_c = softplus(-high) - softplus(low)
    return torch.logaddexp(logit, log_c + low) - torch.logaddexp(log_c, logit - high)
