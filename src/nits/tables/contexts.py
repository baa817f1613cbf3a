"""The columns that are given, as numbers; what a model has never seen of them is told of."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from nits.tables.columns import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame, Values
from nits.tables.idle import refuse_infinite
from nits.tables.schema import Schema
from nits.tables.validate import told_of

FAR = 1e-3
"""The share of a tail that lies farther than what is far beyond the training values."""


def numbers(schema: Schema, frame: Frame, *, strict: bool = False) -> torch.Tensor:
    """Returns the numbers of given columns, shape (N, columns).

    Infinite values, and those that the support rules out, are refused. What was never seen in
    training, for which the model reads the nearest that was, is told of; or refused, too, if
    strict.
    """
    if not schema.columns:
        return torch.from_numpy(schema.numbers(frame)[0])
    coded = schema.encode(frame)
    refuse_infinite(Frame({name: frame.columns[name] for name in schema.names}, frame.form))
    said = []
    for i, column in enumerate(schema.columns):
        values = frame.columns[column.name]
        ruled_out = coded.fixed[:, i] & (coded.log_prob[:, i] == -np.inf)
        _refuse(column, values, ruled_out)
        unseen = coded.unseen[:, i]
        if unseen.any():
            said.append(f"{column.name!r} never had {_first(values, unseen)}")
        if (far := _far(column, values) & ~unseen).any():
            said.append(f"{column.name!r} never came near {_first(values, far)}")
    if said and strict:
        raise ValueError(f"what is given must be like the training rows, but {'; '.join(said)}.")
    if said:
        told_of(f"in training {'; '.join(said)}: the model reads the nearest that it has seen.")
    return torch.from_numpy(coded.numbers)


def _refuse(column: Column, values: Values, at: NDArray[np.bool_]) -> None:
    if at.any():
        raise ValueError(
            f"what is given for {column.name!r} must lie in its support, "
            f"but is {_first(values, at)}; drop such rows."
        )


def _first(values: Values, at: NDArray[np.bool_]) -> str:
    place = int(np.flatnonzero(at)[0])
    if values.missing[place]:
        return "a missing value"
    found = values.array[place]
    return repr(found.item()) if values.array.dtype.kind in "fiub" else repr(str(found))


def _far(column: Column, values: Values) -> NDArray[np.bool_]:
    """Returns which values lie where hardly any next one would."""
    if not isinstance(column, Numeric) or not any(column.beyond[:2]):
        return np.zeros(len(values), bool)
    _, (below, above) = column.reach(values)
    found: NDArray[np.bool_] = ((below < FAR) | (above > 1 - FAR)) & ~values.missing
    return found
