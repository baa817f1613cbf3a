"""The default sizes of the model and of the training run, which depend on the table's size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from nits.heads import Continuous
from nits.training.optimizers import AdamW, Optimizer, ScheduleFree

SIZES = ((10_000, 64), (50_000, 128))
"""Pairs of a number of rows and the hidden units for tables of at most that many rows."""

LARGEST = 256
"""Hidden units for larger tables: wider networks learn less in minutes (docs/recipe.md)."""

UNITS = 12
"""Hidden units for each column, up to `LARGEST`: each rank has its share of them, and with one or
two a rank, networks of 20 to 40 columns were nats behind (docs/recipe.md)."""

FEW = 1_000
"""Rows up to which networks go on learning for more epochs."""

SOME = 20_000
"""Rows from which networks need fewer epochs, and some of them larger PNNs."""

MANY = 100_000
"""Rows from which networks have more hats, and schedule-free AdamW at a higher rate."""

PLENTY = 500_000
"""Rows from which overfitting needs little prevention: less dropout and decay."""

CODES = ((64, None), (400, 32))
"""Pairs of a number of columns and the codes of each in tables of fewer: in wide ones 32 codes were
ahead of a full last layer (docs/recipe.md)."""

WIDE = 400
"""Columns from which codes and hats are fewer, to train 1,000 in less than a gigabyte."""

FEWEST_CODES = 8
"""Codes of each column of such tables."""


MOST_STEPS, MOST_WITHOUT_END = 20_000, 40_000
"""Steps of a network, and of one that is trained without a schedule: a long budget costs nothing if
a look at validation stops it before."""

SECONDS = 900.0
"""About the time of one core for all members: some eight minutes of two."""

STEP, GROUP, PNN_WEIGHT, NETWORK_WEIGHT = 3e-3, 6e-4, 1.2e-8, 1e-10
"""Seconds of one core for a step, for a group of columns in it that are evaluated together, and for
a PNN weight and a weight of the network in each row; measured with AVX2 on four tables of 6 to 11
columns, looks at validation included."""


TOGETHER = 3
"""Networks of one shape, at least, that share the first two where they learn together."""


class Style(NamedTuple):
    """How networks differ that are trained on the same rows.

    name: Of the sort of members that they are.
    guess: Whether half of the units follow a straight-line guess, equation (29).
    hats: Whether hats of the values are read.
    activation: Of the hidden units; see `nits.weights.activations`.
    pnn: Hidden layers of each column's PNN.
    trees: Whether guesses of boosted trees are read, too, if there are any.
    """

    name: str
    guess: bool
    hats: bool
    activation: str
    pnn: tuple[int, ...]
    dropout: float
    weight_decay: float
    whiten: bool = False
    trees: bool = False


FEW_STYLES = (
    Style("guided networks", True, True, "silu", (8,), 0.1, 0.1),
    Style("networks", False, True, "silu", (8,), 0.1, 0.1),
    Style("guided networks without hats", True, False, "silu", (8,), 0.1, 0.2),
)
"""Of tables with fewer rows than `SOME`: which is ahead differs from table to table."""

SOME_STYLES = (
    Style("guided networks", True, True, "silu", (32,), 0.2, 0.1),
    Style("small guided networks", True, True, "silu", (8,), 0.1, 0.1),
    Style("guided networks without hats", True, False, "silu", (8,), 0.1, 0.2),
)
"""Of tables with more, but fewer than `MANY`: a PNN of 32 units is ahead where values repeat."""

TREE_STYLES = (
    Style("guided networks with trees", True, True, "silu", (8,), 0.1, 0.1, trees=True),
    Style("smooth networks with trees", True, False, "silu", (8,), 0.1, 0.2, trees=True),
)
"""Besides, where trees have guessed what is modelled from what is given."""

MANY_STYLES = (Style("guided networks", True, True, "relu", (32,), 0.2, 0.1),)

PLENTY_STYLES = (Style("guided networks", True, True, "relu", (32,), 0.1, 1e-5),)

STYLES: tuple[tuple[int, tuple[Style, ...]], ...] = (
    (PLENTY, PLENTY_STYLES),
    (MANY, MANY_STYLES),
    (SOME, SOME_STYLES),
    (0, FEW_STYLES),
)
"""Pairs of a number of rows, and the styles for tables of at least that many."""


class Plan(NamedTuple):
    """The sizes of the networks, and how they are trained.

    members: How many networks there is time for, of all styles together, if each takes all steps.
    wanted: How many there are if networks stop sooner.
    fitting: Steps, of all networks together, that there is time for.
    hidden, blocks: Width and depth.
    codes: Codes of each column that its PNN weights are made from; None for the hidden units.
    knots: Hats per column.
    steps: The budget, unless the user names one.
    """

    members: int
    wanted: int
    fitting: float
    styles: tuple[Style, ...]
    hidden: int
    blocks: int
    codes: int | None
    knots: int
    batch_size: int
    learning_rate: float
    optimizer: Optimizer
    steps: int

    def overruled(self, named: Mapping[str, Any], style: Mapping[str, Any]) -> Plan:
        """Returns the plan with values that are not None in place of its own, and of its styles."""
        own = {name: value for name, value in style.items() if value is not None}
        styles = tuple(each._replace(**own) for each in self.styles)
        kept = {name: value for name, value in named.items() if value is not None}
        wanted = kept.get("members", self.wanted)
        if styles[0].whiten:
            styles, wanted = styles[:1], kept.get("members", self.members)
        return self._replace(styles=styles, wanted=wanted, **kept)


def plan(
    rows: int,
    columns: int,
    groups: int = 1,
    seconds: float | None = None,
    *,
    guessed: bool = False,
) -> Plan:
    """Returns the plan for a table with these numbers of rows and columns.

    groups: Of columns that are evaluated together.
    seconds: That the user has, on two cores.
    guessed: Whether trees guess the columns; networks that read that compete with others.
    """
    hidden = next((width for limit, width in SIZES if rows <= limit), LARGEST)
    batch = 1024 if rows >= MANY else min(256, max(32, 2 ** max(0, (rows // 40).bit_length() - 1)))
    epochs = 200 if rows >= MANY else 80 if rows >= SOME else 120 if rows > FEW else 300
    most = MOST_WITHOUT_END if rows >= MANY else MOST_STEPS
    styles = next(several for limit, several in STYLES if rows >= limit)
    folds = 2 if rows >= SOME else 4
    if guessed:
        styles += TREE_STYLES
    whole = Plan(
        members=folds * len(styles),
        wanted=folds * len(styles),
        fitting=math.inf,
        styles=styles,
        hidden=max(hidden, min(UNITS * columns, LARGEST), columns),
        blocks=2,
        codes=next((codes for limit, codes in CODES if columns < limit), FEWEST_CODES),
        knots=32 if rows >= MANY else 4 if columns >= WIDE else 8,
        batch_size=batch,
        learning_rate=6e-3 if rows >= MANY else 4e-3 if rows >= SOME else 5e-3,
        optimizer=ScheduleFree() if rows >= MANY else AdamW(),
        steps=int(min(most, max(400, epochs * rows / batch))),
    )
    time = SECONDS if seconds is None else 2 * seconds
    return affordable(whole, time / seconds_per_step(whole, columns, groups))


def affordable(plan: Plan, fitting: float) -> Plan:
    """Returns a plan with fewer members, and then fewer steps, if it would take too long.

    fitting: Steps, of all members together, that there is time for.
    """
    styles = len(plan.styles)
    folds = int(fitting / plan.steps / styles)
    members = min(plan.members, max(folds, 1) * styles) if styles > 1 else plan.members
    steps = max(1, min(plan.steps, int(fitting / members)))
    return plan._replace(members=members, steps=steps, fitting=fitting)


def seconds_per_step(plan: Plan, columns: int, groups: int) -> float:
    """Returns about how long one core takes for a step: a count of operations, not a clock."""
    head = Continuous(hidden=plan.styles[0].pnn, knots=plan.knots)
    outputs = columns * head.weights
    last = plan.hidden * (outputs if plan.codes is None else columns * plan.codes)
    weights = plan.hidden * (columns * head.inputs + 2 * plan.blocks * plan.hidden) + last
    by_row = PNN_WEIGHT * outputs + NETWORK_WEIGHT * weights
    together = TOGETHER if plan.codes is None and type(plan.optimizer) is AdamW else 1
    return (STEP + GROUP * groups) / together + plan.batch_size * by_row
