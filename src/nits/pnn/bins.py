"""What equal bins are: bin k of `count` is the interval from edge k to edge k + 1 of [low, high].

Pure functions of tensors that broadcast: bins k, which need not be possible ones, points x of the
support, and its ends. Section 7 of docs/maths.md.
"""

from __future__ import annotations

import torch
from torch import Tensor


def possible(k: Tensor, count: int) -> Tensor:
    """Returns whether k is a bin: an integer in 0 … count − 1."""
    return (k >= 0) & (k < count) & (k == k.floor())


def edge(k: Tensor, low: Tensor, high: Tensor, count: int) -> Tensor:
    """Returns the lower edge of bin k: of bin 0 exactly low, from bin count on exactly high."""
    return torch.where(k >= count, high, low + (high - low) * (k / count))


def edges(k: Tensor, low: Tensor, high: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Returns both edges of bin k; of what is no bin those of bin 0, and NaN of NaN."""
    inside = torch.where(possible(k, count) | torch.isnan(k), k, torch.zeros_like(k))
    return edge(inside, low, high, count), edge(inside + 1, low, high, count)


def reach(k: Tensor, low: Tensor, high: Tensor, count: int) -> Tensor:
    """Returns how far the bins up to ⌊k⌋ reach, for any number k: from low to high."""
    return edge((k.floor() + 1).clamp(0, count), low, high, count)


def containing(x: Tensor, low: Tensor, high: Tensor, count: int) -> Tensor:
    """Returns the bin that x falls into; high belongs to the last."""
    share = (x - low) / (high - low)
    return (share * count).floor().clamp(0, count - 1)
