"""What the families share: the clock they train by, and what they return."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import nits
from nits.training.optimizers import Optimizer

Rows = NDArray[np.float32]
Values = NDArray[np.float64]
Settings = dict[str, Any]

T = TypeVar("T")

OPTIMIZERS: dict[str, Optimizer] = {"adamw": nits.AdamW(), "schedule-free": nits.ScheduleFree()}
"""The optimizers, by the names that settings have for them."""

LOOKS = 25
"""Looks at validation during a run, as in `nits.fit`."""

VALIDATION_ROWS = 16384
"""Validation rows looked at during training, as in `nits.fit`."""


class Clock:
    """A budget of minutes that runs from the moment the clock is made: set-up counts, scoring does not."""

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
    chosen: What a search among settings chose, if there was one.
    """

    log_prob: Callable[[Rows], Values]
    parameters: int
    epochs: float
    steps: int
    seconds: float
    history: list[tuple[float, float]]
    chosen: Settings = field(default_factory=dict)


def taken(cls: type[T], settings: Settings) -> T:
    """Returns a dataclass with all its fields from the settings, none left to a default."""
    names = [part.name for part in fields(cls)]  # type: ignore[arg-type]
    missing = [name for name in names if name not in settings]
    if missing:
        raise ValueError(
            f"the settings of {settings['model']} lack {', '.join(missing)}; add them."
        )
    return cls(**{name: settings[name] for name in names})


def chunks(rows: Rows, size: int) -> Iterator[Rows]:
    """Yields copies of the rows, so many at once; the rows may be memory-mapped and read-only."""
    for start in range(0, len(rows), size):
        yield np.array(rows[start : start + size])


def some(rows: Rows, count: int, seed: int) -> Rows:
    """Returns up to `count` rows, drawn at random without repetition, in the order of the data."""
    if len(rows) <= count:
        return np.array(rows)
    index = np.random.default_rng(seed).choice(len(rows), count, replace=False)
    return np.array(rows[np.sort(index)])
