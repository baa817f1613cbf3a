"""What an estimator finds out about a table before it learns: columns, and what is given."""

from __future__ import annotations

from sys import stderr
from typing import TYPE_CHECKING

import torch

from nits.model.reading import Reading
from nits.tables import defaults, orders, room, schema, told
from nits.tables.defaults import Plan
from nits.tables.frames import Frame
from nits.tables.idle import Idle
from nits.tables.schema import Schema
from nits.tables.validate import told_of

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

READ_BY = (1,)
"""The PNN of a column that is given, of which only the features are read."""


def refuse_too_wide(estimator: NITSDensity, frame: Frame, rows: int) -> None:
    """Refuses a table whose network does not fit into memory, before anything is decided.

    rows: Of the whole table, of which the frame may have some.
    """
    context = given_names(estimator, list(frame.columns))
    found = plan(estimator, rows, len(frame.columns) - len(context))
    room.refuse_too_wide(frame, context, found)


def plan(
    estimator: NITSDensity, rows: int, columns: int, groups: int = 1, *, guessed: bool = False
) -> Plan:
    """Returns the plan for a table, with what the user has named in place of the defaults.

    guessed: Whether there are trees; by default some of the networks read what they guess.
    """
    e = estimator
    alone = 1 if e.max_steps is not None else None
    named = {
        "members": e.members or alone,
        "hidden": e.hidden,
        "blocks": e.blocks,
        "learning_rate": e.learning_rate,
    }
    style = {
        "pnn": e.pnn,
        "dropout": e.dropout,
        "whiten": e.whiten or None,
        "trees": e.trees or None,
    }
    seconds = None if e.max_minutes is None else 60 * e.max_minutes
    compete = guessed and e.trees is None
    found = defaults.plan(rows, columns, groups, seconds, guessed=compete)
    return found.overruled(named, style)


def given_names(estimator: NITSDensity, columns: list[str]) -> list[str]:
    """Returns the columns that are given and not modelled."""
    context = orders.names_of(estimator.context, columns)
    if len(context) == len(columns):
        raise ValueError("context must leave a column to model, but has all; take one out.")
    return context


def decide(estimator: NITSDensity, frame: Frame) -> None:
    """Decides what each column of a table in memory is."""
    e, context = estimator, given_names(estimator, list(frame.columns))
    if e.whiten:
        decided = schema.unlimited(frame, e.support)
    else:
        decided = schema.infer(frame, e.kinds, e.support, e.pool_below, context, e.engine)
    settle(e, *decided, list(frame.columns))


def settle(estimator: NITSDensity, decided: Schema, idle: Idle, columns: list[str]) -> None:
    """Sets `schema_`, `context_schema_` and `idle_` as was decided, and tells of them."""
    e, context = estimator, given_names(estimator, columns)
    e.idle_, e.columns_ = idle, columns
    e.names_ = [name for name in columns if name not in context]
    e.schema_ = decided.select([name for name in decided.names if name not in context])
    e.context_schema_ = decided.select([name for name in context if name not in idle.columns])
    if not e.schema_.columns:
        raise ValueError(f"a column must be left to model, but there is none; {idle.notice()}")
    told_of(idle.notice(), 6)
    if e.verbose:
        lines = told.lines(e.schema_, e.context_schema_, idle)
        print(*lines, sep="\n", file=stderr)


def read(estimator: NITSDensity, given: torch.Tensor, knots: int) -> None:
    """Sets up what the networks read of the columns that are given."""
    heads = [column.head(READ_BY, knots) for column in estimator.context_schema_.columns]
    estimator.context_reading_ = Reading(heads) if heads else None
    if estimator.context_reading_ is not None:
        estimator.context_reading_.start_at(given.t())
