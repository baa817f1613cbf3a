"""Orders of the columns: as named, or greedy, by how well columns predict one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.printable import listed

GREEDY = "greedy"

RANKED = 20_000
"""Rows from whose ranks the dependence between columns is estimated."""


def positions(
    order: Sequence[str | int] | str | None, names: list[str], rows: NDArray[Any]
) -> list[int] | None:
    """Returns the order as positions, or None for that of the table.

    order: Names or positions of the columns, "greedy", or None.
    rows: The numbers of these columns, shape (N, D), for a greedy order.
    """
    if order is None:
        return None
    if not isinstance(order, str):
        return [position(key, names) for key in order]
    if order != GREEDY:
        raise ValueError(
            f"order must list the columns or be {GREEDY!r}, but is {order!r}; list the columns."
        )
    return greedy(rows)


def names_of(keys: Sequence[str | int] | None, names: list[str]) -> list[str]:
    """Returns the names of columns, each of which is given by its name or its position."""
    return [names[position(key, names)] for key in keys or ()]


def position(key: str | int, names: list[str]) -> int:
    """Returns the position of a column, which is given by its name or its position."""
    if isinstance(key, int | np.integer) and 0 <= key < len(names):
        return int(key)
    if key not in names:
        raise ValueError(f"there is no column {key!r} among {listed(names)}; check the spelling.")
    return names.index(str(key))


def greedy(rows: NDArray[Any]) -> list[int]:
    """Returns an order in which each next column is the one that those before it predict best.

    The first column is the one with the largest sum of squared rank correlations. A prediction is
    a linear regression of a column's ranks on the ranks of the columns before it, and the best one
    explains the largest share of the variance. Missing values have no influence.
    """
    some = np.asarray(rows[:: max(1, len(rows) // RANKED)])
    linked = _correlations(np.stack([_ranks(column) for column in some.T], 1))
    order = [int((linked**2).sum(0).argmax())]
    while len(order) < len(linked):
        rest = [k for k in range(len(linked)) if k not in order]
        before = linked[np.ix_(order, order)]
        cross = linked[np.ix_(order, rest)]
        explained = (cross * np.linalg.lstsq(before, cross, rcond=None)[0]).sum(0)
        order.append(rest[int(explained.argmax())])
    return order


def _correlations(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the correlations of columns; a constant one correlates with itself only."""
    centred = ranks - ranks.mean(0)
    length = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(length > 0, length, 1.0)
    linked: NDArray[np.float64] = unit.T @ unit
    np.fill_diagonal(linked, 1.0)
    return linked


def _ranks(column: NDArray[Any]) -> NDArray[np.float64]:
    """Returns ranks, the same for equal values; a missing value has the mean rank of the others."""
    known = ~np.isnan(column)
    _, index, counts = np.unique(column[known], return_inverse=True, return_counts=True)
    ranks = np.full(len(column), (np.count_nonzero(known) - 1) / 2)
    ranks[known] = (np.cumsum(counts) - (counts + 1) / 2)[index]
    return ranks
