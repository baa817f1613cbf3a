"""The logistic function σ without loss of digits: its logarithm, differences and quantiles."""

from __future__ import annotations

from math import factorial

import torch
from torch import Tensor

FAR = 80.0
"""e⁻⁸⁰ is 0 beside 1 in either precision; smaller powers become subnormal, and those are slow."""


def positive(z: Tensor) -> Tensor:
    """Returns max(z, 0) with slope 1 at 0, so that `softplus` has slope ½ there."""
    return torch.where(z < 0, torch.zeros_like(z), z)


def tail(z: Tensor) -> Tensor:
    """Returns softplus(z) − max(z, 0) = log(1 + e^−|z|), to an absolute error of ε.

    As a term of a logarithm it need not be better, and log1p of tiny numbers is many times slower.
    """
    return torch.log(1 + torch.exp(torch.where(z < 0, z, -z).clamp_min(-FAR)))


def softplus(z: Tensor) -> Tensor:
    """Returns log(1 + eᶻ) = −log σ(−z) to full relative precision for any z, in float64 too."""
    return positive(z) + torch.log1p(torch.exp(torch.where(z < 0, z, -z)))


def log_softplus(z: Tensor) -> Tensor:
    """Returns log softplus(z), which is z itself far to the left."""
    left = z < -40
    return torch.where(left, z, torch.log(softplus(torch.where(left, torch.zeros_like(z), z))))


def softplus_gap(a: Tensor, b: Tensor, gap: Tensor) -> Tensor:
    """Returns softplus(b) − softplus(a) for b = a + gap ≥ a, without cancellation, equation (10).

    For a ≥ 0 max(a, 0) and max(b, 0) differ by exactly the gap.
    """
    return torch.where(a < 0, positive(b), gap) + tail(b) - tail(a)


def kappa(h: Tensor) -> Tensor:
    """Returns κ(h) = 1 − e⁻ʰ to full relative precision."""
    if not torch.compiler.is_compiling():
        return -torch.expm1(-h)
    # Compilers lower expm1(h) to exp(h) − 1, so the power series stands in where that would cancel.
    small = h < 0.5
    near, terms = torch.where(small, h, 0.0), 8 if h.dtype == torch.float32 else 15
    series = torch.zeros_like(h)
    for k in range(terms, 0, -1):
        series = near * (series - (-1) ** k / factorial(k))
    return torch.where(small, series, 1 - torch.exp(-h.clamp_max(FAR)))


def log_kappa(log_h: Tensor) -> Tensor:
    """Returns log κ(h) from log h; it is log h itself where κ(h) = h to rounding."""
    h = torch.exp(log_h)
    small = h < straight(h.dtype)
    return torch.where(small, log_h, torch.log(kappa(torch.where(small, torch.ones_like(h), h))))


def straight(dtype: torch.dtype) -> float:
    """Returns a width h below which κ(h) = h to rounding: such a unit is a straight line."""
    return 1e-10 if dtype == torch.float32 else 1e-20


def logistic_quantile(logit: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Returns z at which a logistic truncated to [low, high] has odds e^logit, equation (13).

    eᶻ = (e^logit + C e^low) / (C + e^(logit − high)),   C = σ(−low) / σ(high)
    """
    log_c = softplus(-high) - softplus(low)
    return torch.logaddexp(logit, log_c + low) - torch.logaddexp(log_c, logit - high)
