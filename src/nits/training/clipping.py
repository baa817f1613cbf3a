"""Keeps a gradient from being longer than it may be."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

LITTLE = 1e-6
"""What torch adds to a norm before it divides by it."""


def clipped(parameters: Sequence[Tensor], longest: float) -> float:
    """Shortens the gradient of all parameters to a norm, and returns the norm that it had.

    As torch's `clip_grad_norm_`, but that multiplies all weights' gradients by one if nothing is to
    be shortened.
    """
    norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
    found = float(norm)
    if not found + LITTLE <= longest:
        clip_grads_with_norm_(parameters, longest, norm)
    return found
