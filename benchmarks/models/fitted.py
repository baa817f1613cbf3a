"""What every model is given and returns: a clock, settings, and a fitted density."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import nits
from nits.training.optimizers import Optimizer

Points = NDArray[np.float32]
"""Rows of a table, shape (N, D)."""

Values = NDArray[np.float64]
"""A number per row, shape (N,)."""

Settings = dict[str, Any]

OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": nits.AdamW(),
    "muon": nits.Muon(),
    "schedule-free": nits.ScheduleFree(),
}
"""The optimizers, by the names that settings have for them."""

VALIDATION_ROWS = 16384
"""Validation rows looked at during training, as in `nits.fit`."""

SCORED_AT_ONCE = 8192


class Clock:
    """Minutes that run from the moment the clock is made: set-up counts."""

    def __init__(self, minutes: float) -> None:
        self.minutes, self.begun = minutes, time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return time.monotonic() - self.begun

    @property
    def progress(self) -> float:
        """The share of the minutes that is used up; more than 1 if they are over."""
        return self.seconds / (60 * self.minutes)

    @property
    def minutes_left(self) -> float:
        """Minutes left, at least a hundredth of a second."""
        return max(self.minutes - self.seconds / 60, 0.01 / 60)


@dataclass
class Fitted:
    """A trained model.

    log_prob: Nats of rows, shape (N, D) → (N,).
    history: Seconds since the clock began, and validation nats at that time.
    chosen: What a search among settings chose, or how training ended.
    model: Ours, so that its weights can be kept.
    """

    log_prob: Callable[[Points], Values]
    parameters: int
    epochs: float
    steps: int
    seconds: float
    history: list[tuple[float, float]]
    chosen: Settings = field(default_factory=dict)
    model: Any = None


def chunks(rows: Points, size: int) -> Iterator[Points]:
    """Yields copies of the rows, `size` at once; the rows may be memory-mapped and read-only."""
    for start in range(0, len(rows), size):
        yield np.array(rows[start : start + size])


def score(log_prob: Callable[[Tensor], Tensor], rows: Points) -> Values:
    """Returns the nats of rows, without gradients: −inf outside the support."""
    with torch.no_grad():
        parts = [log_prob(torch.from_numpy(part)) for part in chunks(rows, SCORED_AT_ONCE)]
    return torch.cat(parts).double().numpy()
