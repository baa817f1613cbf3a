"""The targets y of a supervised model: as columns of a table, and their laws given X.

The first target's law given X is a model's conditional. That of a later one, y_k, is integrated
over the targets before it, by quasi-random draws y^s of them given X:

    P(y_k ≤ y | X) ≈ 1/S Σ_s P(y_k ≤ y | X, y^s_<k)                                          (37)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from nits.model.mixed import MixedDistribution
from nits.pnn.random import private_generator, quasi_uniform
from nits.tables import frames
from nits.tables.conditional import Conditional
from nits.tables.evidence import aside
from nits.tables.evidence.aside import Identifier, Index
from nits.tables.frames import Frame, Values

DRAWS = 16
"""Draws of the targets before one, S of equation (37)."""

SEED = 0

TABLES = ("pandas", "polars", "pyarrow")


def is_table(y: Any) -> bool:
    """Returns whether targets have names of their own: a DataFrame, an Arrow table or a mapping."""
    library = type(y).__module__.partition(".")[0]
    named = library in TABLES and len(getattr(y, "shape", ())) == 2
    return named or isinstance(y, Mapping)


def read(y: Any, taken: list[str]) -> Frame:
    """Returns targets as columns, named unlike those of X."""
    if is_table(y):
        found = frames.read(y).columns
    elif hasattr(y, "to_frame") and not isinstance(y, np.ndarray):  # a Series
        name = getattr(y, "name", None)
        found = {str(name or "y"): next(iter(frames.read(y.to_frame()).columns.values()))}
    else:
        found = _of_array(_checked(y))
    for name, values in found.items():
        _refuse_holes(name, values)
    return Frame({_apart(name, taken): values for name, values in found.items()}, "numpy")


def _checked(y: Any) -> NDArray[Any]:
    if y is None:
        raise ValueError(
            "this model requires y to be passed, but the target y is None; "
            "NITSDensity learns without one."
        )
    array = np.asarray(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
    if array.ndim > 1 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    return array


def _of_array(array: NDArray[Any]) -> dict[str, Values]:
    if array.ndim == 1:
        return {"y": frames.plain(array)}
    return {f"y{k}": frames.plain(column) for k, column in enumerate(array.T)}


def _refuse_holes(name: str, values: Values) -> None:
    lost = values.missing
    if values.array.dtype.kind == "f":
        lost = ~np.isfinite(values.array)
    if lost.any():
        raise ValueError(
            f"Input y contains NaN or infinity: {name!r} has {int(lost.sum())} such values; "
            "drop those rows."
        )


def _apart(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"{name} (target)"
    return name


def kind(values: Values, name: str) -> str | None:
    """Returns the kind of numbers that would be set aside as an index; None for all others."""
    if not isinstance(aside.find(values.known, name), Index | Identifier):
        return None
    return {"f": "continuous", "i": "integer", "u": "integer"}.get(values.array.dtype.kind)


def laws(density: Any, given: torch.Tensor) -> list[Conditional]:
    """Returns the law of each target given each of N rows of X, whatever the others are.

    density: A `NITSDensity` of the targets, with X as its context.
    given: The numbers of X.
    """
    context, columns = density._context(given), density.schema_.columns
    rows, count = len(given), len(columns)
    model = density.model_
    with torch.no_grad():
        if count == 1:
            found = model.conditionals(torch.zeros(rows, 1), context)
            return [Conditional(columns[0], found[0])]
        draws = [model.conditionals(y, context) for y in _drawn(density, context, rows)]
        first = int(model.order[0])
        even = model.like.new_full((DRAWS, rows), -math.log(DRAWS))
        by_target = list(zip(*draws, strict=True))
        mixed = [MixedDistribution(list(parts), even) for parts in by_target]
    pairs = zip(columns, mixed, strict=True)
    return [
        Conditional(column, by_target[k][0] if k == first else law)
        for k, (column, law) in enumerate(pairs)
    ]


def _drawn(density: Any, context: torch.Tensor | None, rows: int) -> list[torch.Tensor]:
    """Returns S quasi-random draws of all targets given X, known values, each of shape (N, K)."""
    model, columns = density.model_, len(density.schema_.columns)
    source = private_generator(SEED, model.like.device)
    points = quasi_uniform(torch.Size((DRAWS, columns)), model.like, source)
    within = density.schema_.known()
    none = torch.full((rows, columns), torch.nan).to(model.like)
    return [model.filled(u.expand(rows, -1), none, context, within) for u in points]
