"""Hat functions on a column's quantiles, which the weight model reads beside the value itself.

A hat is 1 at its own knot, 0 at the neighbouring knots and beyond, and straight in between. With
knots at quantiles the network sees where a value stands in its column however the column is spread:
in a narrow spike two values that differ by a thousandth of the range may fall under different hats.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nits.pnn import initial

LEAST_GAP = 1e-6
"""Least gap between knots, as a share of their range: where knots coincide the hats have a step."""

UNTRAINED = 3.0
"""Knots lie in [−3, 3] where the support is infinite, as far as it allows, until data say where."""


def features(x: Tensor, knots: Tensor) -> Tensor:
    """Returns x, shape (*, N), and the hats of its knots, shape (*, K), together shape (1 + K, *, N)."""
    count = knots.shape[-1]
    if not count:
        return x.unsqueeze(0)
    least = LEAST_GAP * (knots[..., -1:] - knots[..., :1]) + torch.finfo(x.dtype).tiny
    steepness = 1 / torch.maximum(knots.diff(dim=-1), least)
    start, steepness = (t.movedim(-1, 0).unsqueeze(-1) for t in (knots[..., :-1], steepness))
    ramps = ((x - start) * steepness).clamp(0, 1)  # (K − 1, *, N)
    # About one hat in K is up at a time: √K gives each the size of an ordinary input.
    size = 0.8 * count**0.5
    hats = torch.cat([1 - ramps[:1], ramps[:-1] - ramps[1:], ramps[-1:]]) * size
    return torch.cat([x.unsqueeze(0), hats])


def even(low: float, high: float, count: int) -> Tensor:
    """Returns knots before any data: evenly spread over the support, or the part of it around zero."""
    if math.isinf(low) or math.isinf(high):
        low, high = max(low, min(-UNTRAINED, high - 1)), min(high, max(UNTRAINED, low + 1))
    return torch.linspace(low, high, count)


def at_quantiles(x: Tensor, count: int) -> Tensor:
    """Returns knots at evenly spaced quantiles of x, shape (N,), from the least to the greatest."""
    if not count:
        return x[:0]
    return initial.quantiles(x, torch.linspace(0, 1, count, dtype=x.dtype, device=x.device))
