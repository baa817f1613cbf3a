"""How often rows lie beyond the training values: as often as the next row does, 1/(n + 1).

What lies beyond is a part of the mass that the model has for the outermost values, equation (28).
A model need not have as much as the training values do there, so the part is found anew when it is
trained: the mean mass of training rows takes the place of the share k/n of their values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from nits.model.density import Density
from nits.tables import orders
from nits.tables.columns import Column
from nits.tables.columns.column import Numbers
from nits.tables.columns.numeric import Numeric
from nits.tables.conditional import Conditional
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
    mixture = orders.differing(density)
    parts = [(1.0, density)]
    if mixture is not None:
        parts = list(zip(mixture.log_weights.exp().tolist(), mixture.members, strict=True))
    masses = sum(share * _masses(schema, member, rows) for share, member in parts)
    pairs = zip(schema.columns, np.asarray(masses), strict=True)
    return Schema([_adjusted(column, *each) for column, each in pairs], schema.form)


def _masses(schema: Schema, density: Density, rows: Rows) -> Numbers:
    """Returns the mean masses of the lower and the upper outermost values, shape (D, 2)."""
    if rows.places is not None:  # of a table in pieces some rows are there
        index = rows.spread(LOOKED_AT)
    else:
        index = torch.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT)).round().long()
    batch = rows.take(index, density.like)
    weight = torch.ones(len(index)) if batch.weight is None else batch.weight.cpu()
    share = (weight / weight.sum()).double().numpy()
    found = np.zeros((len(schema.columns), 2))
    with torch.no_grad():
        laws = density.conditionals(batch.x, batch.context)
    for i, (column, law) in enumerate(zip(schema.columns, laws, strict=True)):
        bent = Conditional(column, law).bent()
        found[i] = (bent.at[1] - bent.at[0]) @ share, (bent.at[3] - bent.at[2]) @ share
    return found


def _adjusted(column: Column, lower: float, upper: float) -> Column:
    if not isinstance(column, Numeric):
        return column

    def adjusted(tail: Tail, mass: float) -> Tail:
        part = max(mass / column.known, tail.share / MOST) if tail.share else tail.part
        return replace(tail, part=part)

    below, above = adjusted(column.ruler.lower, lower), adjusted(column.ruler.upper, upper)
    return replace(column, ruler=replace(column.ruler, lower=below, upper=above))
