"""The size of the model and of the training run that suit a table, where the user names none."""

from __future__ import annotations

from typing import NamedTuple

from nits.training.optimizers import AdamW, Optimizer, ScheduleFree

SIZES = ((2_000, 32), (10_000, 64), (50_000, 128), (1_000_000, 256))
"""Hidden units for tables of up to so many rows."""

LARGEST = 512

SOME = 20_000
"""Rows from which AdamW without a schedule won the search, at twice the rate; with fewer it overfits."""

MANY = 100_000
"""Rows from which a table is learned without much help against overfitting."""


class Plan(NamedTuple):
    """Width and depth of the weight model, hats per column, dropout, rows per step, how it learns, steps."""

    hidden: int
    blocks: int
    knots: int
    dropout: float
    batch_size: int
    learning_rate: float
    optimizer: Optimizer
    steps: int


def plan(rows: int, columns: int) -> Plan:
    """Returns the plan for a table of so many rows and columns."""
    hidden = next((width for limit, width in SIZES if rows <= limit), LARGEST)
    batch = 1024 if rows >= MANY else min(256, max(32, 2 ** max(0, (rows // 40).bit_length() - 1)))
    epochs, free = 60, SOME <= rows < MANY
    return Plan(
        hidden=max(hidden, columns),
        blocks=2,
        knots=32 if rows >= MANY else 8,
        dropout=0.1 if rows >= MANY else 0.3,
        batch_size=batch,
        learning_rate=3e-3 if rows >= MANY else 2e-3 if free else 1e-3,
        optimizer=ScheduleFree() if free else AdamW(),
        steps=int(min(20_000, max(400, epochs * rows / batch))),
    )
