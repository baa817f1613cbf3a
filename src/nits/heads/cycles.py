"""What repeats: the place of a value in a cycle, such as the time of day or the weekday."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks


@dataclass(frozen=True)
class Cycle:
    """The network reads cos and sin of 2π h (rate · x + phase) for h = 1 … harmonics.

    rate: Cycles per unit of the value.
    phase: Where in its cycle the value 0 lies, as a share of the cycle.

    >>> import nits
    >>> day = nits.heads.Cycle(rate=1 / 24)  # of a column of hours
    """

    rate: float
    phase: float = 0.0
    harmonics: int = 1

    def __post_init__(self) -> None:
        checks.positive("harmonics", self.harmonics)


def width(cycles: Sequence[Cycle]) -> int:
    """Returns how many features the cycles have."""
    return sum(2 * cycle.harmonics for cycle in cycles)


def features(x: Tensor, cycles: Sequence[Cycle]) -> Tensor:
    """Returns the features of x in its cycles, shape (width, *), each of mean square one.

    The place in the cycle is found in float64: x may be many cycles away from zero.
    """
    parts = []
    for cycle in cycles:
        turns = x.double() * cycle.rate + cycle.phase
        angle = 2 * math.pi * (turns - turns.floor())
        for h in range(1, cycle.harmonics + 1):
            parts += [torch.cos(h * angle), torch.sin(h * angle)]
    return (2**0.5 * torch.stack(parts)).to(x.dtype)
