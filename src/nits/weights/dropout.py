"""Dropout that draws four coins from every random word; torch's own on CPU draws a word for every coin."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SIDES = 2**16
"""How finely a coin can be weighted: its 16 bits are compared with the probability."""

_ALL_BITS = -(2**63)
"""From here to the largest integer: every word is as likely."""


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zeroes entries with the probability, to 16 bits, and scales the rest so that the mean stays."""
    lost = round(probability * SIDES)
    if x.device.type != "cpu" or not training or lost in (0, SIDES):
        return functional.dropout(x, probability, training)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(_ALL_BITS, None)
    coins = words.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (coins >= lost - SIDES // 2).to(x.dtype)
    return x * kept.mul_(SIDES / (SIDES - lost))
