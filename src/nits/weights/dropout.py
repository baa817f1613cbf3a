"""Dropout with one random word for every four entries, where torch's own takes a word for each."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

LEVELS = 2**16
"""Values that 16 random bits can take: the probability of dropping is a multiple of 1 / LEVELS."""

_LEAST = -(2**63)
"""The least 64-bit integer: all words from here to the greatest are equally likely."""


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zeroes entries with this probability, to 16 bits, and scales the rest to keep the mean."""
    dropped = round(probability * LEVELS)
    if x.device.type != "cpu" or not training or dropped in (0, LEVELS):
        return functional.dropout(x, probability, training)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(_LEAST, None)
    level = words.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (level >= dropped - LEVELS // 2).to(x.dtype)
    return x * kept.mul_(LEVELS / (LEVELS - dropped))
