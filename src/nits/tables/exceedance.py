"""How often rows lie beyond the training values: as often as the next row does, 1/(n + 1).

What lies beyond is a part of the mass that the model has for the outermost values, equation (28).
A model need not have as much as the training values do there, so the part is found anew when it is
trained: the mean mass of training rows takes the place of the share k/n of their values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from nits.chunks import slices
from nits.model.density import Density
from nits.tables import orders
from nits.tables.columns import Column
from nits.tables.columns.column import Numbers
from nits.tables.columns.numeric import Numeric
from nits.tables.conditional import Conditional, rows_at_once
from nits.tables.evidence.tails import Tail
from nits.tables.schema import Schema
from nits.training.rows import Rows

LOOKED_AT = 1024
"""Rows whose mean mass is found."""

MOST = 0.5
"""Of the mass of the outermost values, what may go beyond at most."""


def calibrated(schema: Schema, density: Density, rows: Rows) -> Schema:
    """Returns columns by which the mean probability of lying beyond an end is that of a next row.

    density: Of the numbers of the columns, trained on the rows.
    """
    if not any(any(column.beyond[:2]) for column in schema.columns):
        return schema
    mixture = orders.differing(density)
    parts = [(1.0, density)]
    if mixture is not None:
        parts = list(zip(mixture.log_weights.exp().tolist(), mixture.members, strict=True))
    masses = sum(share * _masses(schema, member, rows) for share, member in parts)
    pairs = zip(schema.columns, np.asarray(masses), strict=True)
    return Schema([_adjusted(column, *each) for column, each in pairs], schema.form)


def changes(before: Schema, after: Schema, numbers: Numbers) -> Numbers:
    """Returns by how much the log-densities of rows are raised, shape (N,).

    numbers: Of rows between the ends, shape (N, D).
    """
    found = np.zeros(len(numbers))
    for old, new, column in zip(before.columns, after.columns, numbers.T, strict=True):
        if isinstance(old, Numeric) and isinstance(new, Numeric):
            found += new.log_kept(column) - old.log_kept(column)
    return found


def _masses(schema: Schema, density: Density, rows: Rows) -> Numbers:
    """Returns the mean masses of the lower and the upper outermost values, shape (D, 2)."""
    if rows.places is not None:  # of a table in pieces some rows are there
        index = rows.spread(LOOKED_AT)
    else:
        index = torch.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT)).round().long().unique()
    found, total = np.zeros((len(schema.columns), 2)), 0.0
    for some in slices(len(index), rows_at_once(density)):
        batch = rows.take(index[some], density.like)
        weight = torch.ones(len(batch.x)) if batch.weight is None else batch.weight.cpu()
        share = weight.double().numpy()
        with torch.no_grad():
            laws = density.conditionals(batch.x, batch.context)
        for i, (column, law) in enumerate(zip(schema.columns, laws, strict=True)):
            at = Conditional(column, law).bent().at
            found[i] += (at[1] - at[0]) @ share, (at[3] - at[2]) @ share
        total += float(share.sum())
    return found / total


def _adjusted(column: Column, lower: float, upper: float) -> Column:
    if not isinstance(column, Numeric):
        return column

    def adjusted(tail: Tail, mass: float) -> Tail:
        part = max(mass / column.known, tail.share / MOST) if tail.share else tail.part
        return replace(tail, part=float(part))

    below, above = adjusted(column.ruler.lower, lower), adjusted(column.ruler.upper, upper)
    return replace(column, ruler=replace(column.ruler, lower=below, upper=above))
