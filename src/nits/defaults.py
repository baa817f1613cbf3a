"""The size of the model and of the training run that suit a table, where the user names none."""

from __future__ import annotations

from typing import NamedTuple

SIZES = ((2_000, 32), (10_000, 64), (50_000, 128), (1_000_000, 256))
"""Hidden units for tables of up to so many rows."""

LARGEST = 512


class Plan(NamedTuple):
    """Width and depth of the weight model, hats per column, dropout, rows per step, steps."""

    hidden: int
    blocks: int
    knots: int
    dropout: float
    batch_size: int
    steps: int


def plan(rows: int, columns: int) -> Plan:
    """Returns the plan for a table of so many rows and columns."""
    hidden = next((width for limit, width in SIZES if rows <= limit), LARGEST)
    batch = min(1024, max(32, 2 ** max(0, (rows // 40).bit_length() - 1)))
    epochs = 60
    return Plan(
        hidden=max(hidden, columns),
        blocks=2,
        knots=32 if rows >= 2_000 else 8,
        dropout=0.0 if rows >= 100_000 else 0.1,
        batch_size=batch,
        steps=int(min(20_000, max(400, epochs * rows / batch))),
    )
