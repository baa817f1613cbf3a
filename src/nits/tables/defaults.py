"""The default sizes of the model and of the training run, which depend on the table's size."""

from __future__ import annotations

from typing import NamedTuple

from nits.training.optimizers import AdamW, Optimizer, ScheduleFree

SIZES = ((2_000, 32), (10_000, 64), (50_000, 128), (1_000_000, 256))
"""Pairs of a number of rows and the hidden units for tables of at most that many rows."""

LARGEST = 512
"""Hidden units for larger tables."""

SOME = 20_000
"""Rows from which schedule-free AdamW won the search; with fewer it overfits."""

MANY = 100_000
"""Rows from which overfitting needs little prevention: more hats, less dropout."""


CODES = ((64, None), (400, 32))
"""Pairs of a number of columns and the codes of each in tables of fewer: in wide ones 32 codes were
ahead of a full last layer (docs/recipe.md)."""

WIDE = 400
"""Columns from which codes and hats are fewer, to train 1,000 in less than a gigabyte."""

FEWEST_CODES = 8
"""Codes of each column of such tables."""


class Plan(NamedTuple):
    """The size of the weight model, and how it is trained.

    hidden, blocks: Width and depth.
    codes: Codes of each column that its PNN weights are made from; None for the hidden units.
    knots: Hats per column.
    steps: The budget, unless the user names one.
    """

    hidden: int
    blocks: int
    codes: int | None
    knots: int
    dropout: float
    batch_size: int
    learning_rate: float
    optimizer: Optimizer
    steps: int


def plan(rows: int, columns: int) -> Plan:
    """Returns the plan for a table with these numbers of rows and columns."""
    hidden = next((width for limit, width in SIZES if rows <= limit), LARGEST)
    batch = 1024 if rows >= MANY else min(256, max(32, 2 ** max(0, (rows // 40).bit_length() - 1)))
    epochs = 60 if rows >= SOME else 120  # few rows: a look at validation stops training before
    free = SOME <= rows < MANY
    return Plan(
        hidden=max(hidden, columns),
        blocks=2,
        codes=next((codes for limit, codes in CODES if columns < limit), FEWEST_CODES),
        knots=32 if rows >= MANY else 4 if columns >= WIDE else 8,
        dropout=0.1 if rows >= MANY else 0.3,
        batch_size=batch,
        learning_rate=3e-3 if rows >= MANY else 2e-3 if free else 5e-3,
        optimizer=ScheduleFree() if free else AdamW(),
        steps=int(min(20_000, max(400, epochs * rows / batch))),
    )
