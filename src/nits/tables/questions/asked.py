"""Conditions and tables as questions in the model's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from nits.tables.columns import Column
from nits.tables.frames import Frame, Values
from nits.tables.questions import conditions, parser
from nits.tables.questions.conditions import Condition, Conditions, Missing, Told, Value
from nits.tables.questions.cuts import One, coded
from nits.tables.questions.events import Event, event
from nits.tables.questions.query import Query
from nits.tables.validate import told_of

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


def gathered(estimator: NITSDensity, given: Told | str | None) -> Conditions:
    """Returns conditions by column, or from a text; columns set aside cannot have any."""
    if hasattr(given, "shape"):
        raise TypeError(
            f"given must map columns to their values, but is a {type(given).__name__}; pass "
            "{name: value}, or a table to given_rows for one question per row."
        )
    if not isinstance(given, str | Mapping | Iterable | None):
        raise TypeError(
            f"given must map columns to their values, or be a text, but is {given!r}; "
            'write {"age": 30} or "age > 30".'
        )
    told = parser.parse(given) if isinstance(given, str) else given
    names = [*estimator.names_, *estimator.context_schema_.names]
    found = conditions.gathered(told, names)
    for name in found:
        if name in estimator.idle_.columns:
            reason = estimator.idle_.columns[name][0].reason
            raise ValueError(
                f"column {name!r} was set aside in training ({reason}), so it cannot be given or "
                "asked; leave it out."
            )
    return found


def empty(estimator: NITSDensity, rows: int = 1) -> Query:
    """Returns the question in which nothing is given."""
    found = Query.empty(estimator.schema_.columns, rows, estimator.model_.like)
    return replace(found, companion=getattr(estimator, "companion_", None))


def query(estimator: NITSDensity, given: Conditions, rows: int = 1) -> Query:
    """Returns the question in which conditions are given, the same for all rows."""
    columns = estimator.schema_.columns
    found = empty(estimator, rows)
    events: dict[int, Event] = {}
    for i, column in enumerate(columns):
        told = given.get(column.name, [])
        if len(told) == 1 and isinstance(told[0], Value | Missing):
            _put(found, i, single(column, told[0]))
        elif told:
            events[i] = event(column, told)
    return replace(found, events=events, context=_context(estimator, given, rows))


def single(column: Column, told: Value | Missing) -> One:
    """Returns what the model sees of one value, or of a hole."""
    if isinstance(told, Value):
        return coded(column, told.value)
    event(column, [told])  # refuses columns without holes
    hole = Values(np.full(1, np.nan), np.ones(1, bool), "float64")
    code = column.encode(hole)
    return One.of(code)


def _put(question: Query, i: int, one: One) -> None:
    question.given[:, i] = True
    question.numbers[:, i] = one.number
    question.log_prob[:, i] = one.log_prob
    question.fixed[:, i] = one.fixed
    question.side[:, i] = one.side


def _context(estimator: NITSDensity, given: Conditions, rows: int) -> torch.Tensor | None:
    """Returns what the model reads of its context's columns, all of which must be given a value."""
    schema = estimator.context_schema_
    if estimator.context_reading_ is None:
        return None
    numbers = torch.empty(1, len(schema.columns))
    for i, column in enumerate(schema.columns):
        told: list[Condition] = given.get(column.name, [])
        if len(told) != 1 or not isinstance(told[0], Value | Missing):
            raise ValueError(
                f"this model was fitted given {', '.join(schema.names)}, so {column.name!r} must "
                f"be given one value, but is given {told[0] if told else 'none'}."
            )
        numbers[0, i] = single(column, told[0]).number
    features = estimator._context(numbers)
    return None if features is None else features.expand(rows, -1)


def tabled(estimator: NITSDensity, base: Query, frame: Frame, names: list[str]) -> Query:
    """Returns questions, one for each row of a table, in which its values are given, too.

    base: What is given besides, the same for all rows.
    names: The columns of the table that are given.
    """
    n = len(frame)
    question = base.take(torch.zeros(n, dtype=torch.long))
    question = replace(
        question,
        given=question.given.clone(),
        numbers=question.numbers.clone(),
        log_prob=question.log_prob.clone(),
        fixed=question.fixed.clone(),
        side=question.side.clone(),
    )
    for i, column in enumerate(estimator.schema_.columns):
        if column.name not in names:
            continue
        code = column.encode(frame.columns[column.name])
        question.given[:, i] = True
        question.numbers[:, i] = torch.from_numpy(code.numbers).to(question.numbers)
        question.log_prob[:, i] = torch.from_numpy(code.log_prob)
        question.fixed[:, i] = torch.from_numpy(code.fixed)
        question.side[:, i] = torch.from_numpy(code.side)
    context = question.context
    if estimator.context_reading_ is not None:
        context = estimator._context(estimator._given(frame))
    events = {i: e for i, e in base.events.items() if base.laws[i].column.name not in names}
    return replace(question, events=events, context=context)


def tell_unseen(estimator: NITSDensity, frame: Frame, names: list[str]) -> None:
    """Gives a notice of values in a table that were never seen in training."""
    for column in estimator.schema_.columns:
        if column.name in names:
            unseen = column.encode(frame.columns[column.name]).unseen
            if unseen.any():
                value = frame.columns[column.name].array[unseen][0]
                told_of(
                    f"{int(unseen.sum())} of {len(frame)} rows give {column.name!r} a value that "
                    f"was never seen in training, such as {value!r}; answers for them take it "
                    "as unknown.",
                    5,
                )


def narrowed(base: Query, told: Conditions) -> Query | None:
    """Returns a question in which further conditions hold; None if they cannot.

    told: Events by column; a given value meets them or not.
    """
    events = dict(base.events)
    for i, law in enumerate(base.laws):
        column = law.column
        if column.name not in told:
            continue
        asked = event(column, told[column.name])
        if bool(base.given[:, i].all()):
            if not _meets(float(base.numbers[0, i]), bool(base.fixed[0, i]), asked):
                return None
            continue
        events[i] = asked & events[i] if i in events else asked
        if events[i].empty:
            return None
    return replace(base, events=events)


def _meets(number: float, fixed: bool, asked: Event) -> bool:
    """Returns whether a given value is in an event."""
    if fixed:
        return bool(asked.lower or asked.upper)
    return any(low < number <= high for low, high in asked.numbers)
