"""Log-densities of rows, or of some of their columns, under conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.tables import zones
from nits.tables.frames import Frame, Values
from nits.tables.questions import asked
from nits.tables.questions.cloud import deterministic, members, ratio, walked
from nits.tables.questions.conditions import Missing, Value
from nits.tables.questions.cuts import valued
from nits.tables.questions.query import Query
from nits.tables.questions.results import Found

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

PARTICLES = 512
"""Particles for each row of a table."""


def log_prob(answer: Answer, X: Any, columns: Sequence[str] | None) -> Found:
    """Returns log-densities of a table's rows under an answer's conditions, shape (N,).

    columns: Those that are scored; None for all.
    """
    estimator = answer.estimator
    names = estimator.schema_.names if columns is None else list(columns)
    table = zones.read(X)
    own = table if columns is None else _only(table, names)
    frame = _completed(answer, own, len(table))
    for name in names:
        if name not in frame.columns:
            refuse_lacking(name, table)
    question = asked.tabled(estimator, answer.query, frame, names)
    inside = _inside(answer, question)
    part, ess = evidence(estimator.model_, question, answer.seed)
    whole, whole_ess = answer.evidence()
    found, error = ratio(part, whole.expand(len(part), -1))
    with np.errstate(divide="ignore"):
        logs = np.log(found.numpy())
        errors = error.numpy() / np.maximum(found.numpy(), 1e-300)
    # Where all columns are scored nothing is drawn, and logarithms are exact, however small.
    if part.shape[1] == whole.shape[1] == 1:
        logs = (part - whole)[:, 0].numpy()
    elif part.shape[1] == 1:
        mean = whole.logsumexp(1) - np.log(whole.shape[1])
        logs = (part[:, 0] - mean).numpy()
    sizes = np.minimum(ess.numpy(), whole_ess.numpy())
    return Found.of(np.where(inside, logs, -np.inf), errors, sizes)


def refuse_lacking(name: str, frame: Frame) -> None:
    """Refuses a table without a column."""
    if name not in frame.columns:
        raise ValueError(
            f"the table must have the column {name!r}, but has {', '.join(frame.columns)}."
        )


def _only(frame: Frame, names: list[str]) -> Frame:
    """Returns some columns of a table: what it has of others is not asked about."""
    return Frame({name: v for name, v in frame.columns.items() if name in names}, frame.form)


def _completed(answer: Answer, frame: Frame, n: int) -> Frame:
    """Returns a table of n rows with the columns that were given one value, if it lacks them."""
    columns = dict(frame.columns)
    for name, told in answer.conditions.items():
        if name in columns or len(told) != 1 or not isinstance(told[0], Value | Missing):
            continue
        if isinstance(told[0], Missing):
            columns[name] = Values(np.full(n, np.nan), np.ones(n, bool), "float64")
        else:
            schema = answer.estimator.schema_
            known = name in schema.names
            schema = schema if known else answer.estimator.context_schema_
            column = schema.columns[schema.names.index(name)]
            columns[name] = valued(column, told[0].value).take(np.zeros(n, np.int64))
    return Frame(columns, frame.form)


def _inside(answer: Answer, question: Query) -> NDArray[np.bool_]:
    """Returns which rows meet the conditions."""
    base = answer.query
    found = np.ones(question.rows, bool)
    for i in range(len(base.laws)):
        own = question.numbers[:, i]
        if bool(base.given[0, i]):
            found &= (own == base.numbers[0, i].to(own)).numpy()
        if i in base.events and bool(question.given[:, i].all()):
            event = base.events[i]
            inside = torch.zeros_like(own, dtype=torch.bool)
            for low, high in event.numbers:
                inside |= (own > low) & (own <= high)
            fixed = question.fixed[:, i]
            beyond = torch.full_like(inside, bool(event.lower or event.upper))
            found &= torch.where(fixed, beyond, inside).numpy()
    return found


def evidence(density: Any, query: Query, seed: int) -> tuple[Tensor, Tensor]:
    """Returns log-estimates of each row's density, shape (R, B), and effective sizes, (R,)."""
    size, parts, sizes = at_once(density, query), [], []
    with torch.no_grad():
        for start in range(0, query.rows, size):
            some = query.take(slice(start, start + size))
            cloud = walked(density, some, seed, total=PARTICLES)
            parts.append(cloud.log_evidence())
            sizes.append(cloud.ess())
    most_batches = max(part.shape[1] for part in parts)
    return torch.cat([part.expand(-1, most_batches) for part in parts]), torch.cat(sizes)


def at_once(density: Any, query: Query) -> int:
    """Returns how many rows can be asked about together."""
    every = members(density)
    most = min(member.stepped_at_once for _, member in every)
    exact = all(deterministic(query, member) for _, member in every)
    return max(1, most // (len(every) if exact else PARTICLES))
