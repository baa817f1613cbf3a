"""Outliers of a table: how surprising its rows are, and which entries, free of units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from nits.chunks import slices
from nits.tables import surprise
from nits.tables.columns.column import Numbers
from nits.tables.frames import Frame
from nits.tables.schema import Encoded
from nits.tables.validate import checked_frame

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

AT_ONCE = 1024
"""Rows whose level sets are measured together."""


class Outliers:
    """The methods of a model by which rows that stand out are found."""

    def outlier_scores(self, X: Any, per_column: bool = False) -> Numbers:
        """Returns how far out each row is, shape (N,), or each entry, shape (N, D), in nats.

        A row's score is −log of the share of rows that are like it, where half a standard deviation
        of a column is like no difference, equation (40); an entry's the part of it that a column
        adds, given those before it. A model without the network for this (`outliers=False`, or a
        lone network) has the sum of surprises in its place; see `surprises`. Neither has a unit:
        scores stay the same if a column goes from metres to millimetres. What `support` rules out
        is infinite; columns of the context have no score.
        """
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        frame = checked_frame(model, X, reset=False)
        model.schema_._refuse_lacking(frame)
        network = model.outliers_
        found = of_frame(model, frame) if network is None else network.scores(model, frame)
        return found if per_column else np.asarray(found.sum(1))

    def surprises(self, X: Any) -> Numbers:
        """Returns how surprising each entry is, shape (N, D).

        That is −log P(a value at most as likely | columns modelled before it) in nats, equation
        (36). An entry like those of training has 1 on average.
        """
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        return of_frame(model, checked_frame(model, X, reset=False))


def of_frame(model: NITSDensity, frame: Frame) -> Numbers:
    """Returns how surprising each entry is, shape (N, D)."""
    coded = model.schema_.encode(frame)
    given = model._given(frame)
    x = torch.from_numpy(coded.numbers)
    found = np.empty(coded.numbers.shape)
    for rows in slices(len(x), AT_ONCE):
        with torch.no_grad():
            laws = model.model_.conditionals(x[rows], model._context(given[rows]))
        found[rows] = -_log_surprises(model, laws, coded, frame, rows)
    return np.asarray(found + 0.0)  # no −0


def _log_surprises(
    model: NITSDensity, laws: list[Any], coded: Encoded, frame: Frame, rows: slice
) -> Numbers:
    """Returns log p, equation (36), of some rows' entries, shape (n, D)."""
    columns = enumerate(zip(model.schema_.columns, laws, strict=True))
    parts = []
    for i, (column, law) in columns:
        values = frame.columns[column.name].take(rows)
        parts.append(surprise.log_surprise(column, law, coded.of(rows, i), values))
    return np.stack(parts, 1)
