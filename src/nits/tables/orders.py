"""Orders of the columns: as named, greedy by how well columns predict one another, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import printable
from nits.model.density import Density
from nits.model.mixture import Mixture

AS_IT_IS, GREEDY, SEARCH, SEVERAL = "table", "greedy", "search", "several"
CALLED = (AS_IT_IS, GREEDY, SEARCH, SEVERAL)
"""What an order that is not listed may be called."""

TABLE = "the table's"
"""What the order of the table is called among others."""

RANDOM = 2
"""Random orders among those that are tried."""

MOST = 400
"""Columns of the widest table for which a greedy order is tried: it takes as long as all the rest.
"""

RANKED = 20_000
"""Rows from whose ranks the dependence between columns is estimated."""


def listed(order: Sequence[str | int] | str | None, names: list[str]) -> list[int]:
    """Returns the positions of the columns that the user lists, which come first; maybe none."""
    if order is None or isinstance(order, str):
        if order not in (None, *CALLED):
            named = ", ".join(map(repr, CALLED))
            raise ValueError(
                f"order must list columns or be one of {named}, but is {order!r}; list the columns."
            )
        return []
    found = [position(key, names) for key in order]
    twice = [names[i] for k, i in enumerate(found) if i in found[:k]]
    if twice:
        raise ValueError(f"order must name a column once, but has {twice[0]!r} twice; drop one.")
    return found


def candidates(
    first: Sequence[int], rows: NDArray[Any], categories: Sequence[int] = ()
) -> dict[str, list[int]]:
    """Returns orders that differ, by what they are called, that of the table first.

    first: Columns that come first in all of them.
    rows: The numbers of the columns, shape (N, D).
    categories: Which columns are categorical.
    """
    some = _some(rows)
    own = list(range(rows.shape[1]))
    best = greedy(rows) if len(own) <= MOST else own
    values = np.array([len(np.unique(column[~np.isnan(column)])) for column in some.T])
    every = {
        TABLE: own,
        "few values first": np.argsort(values, kind="stable").tolist(),
        "categories first": sorted(own, key=lambda i: i not in categories),
        GREEDY: best,
        "reversed": own[::-1],
        "greedy, reversed": best[::-1],
    }
    source = np.random.default_rng(0)
    every |= {f"random {k + 1}": source.permutation(own).tolist() for k in range(RANDOM)}
    found: dict[str, list[int]] = {}
    for name, order in every.items():
        whole = [*first, *(i for i in order if i not in first)]
        if whole not in found.values():
            found[name] = whole
    return found


def differing(model: Density) -> Mixture | None:
    """Returns a mixture whose members model the columns in different orders, None for others."""
    return model if isinstance(model, Mixture) and not model.has_one_order else None


def refuse(differing: Mixture | None) -> None:
    """Refuses what members cannot do whose orders differ."""
    if differing is not None:
        raise ValueError(
            "the members must model the columns in the same order for this, but their orders "
            f"differ; fit with order={SEARCH!r}, or list the columns."
        )


def names_of(keys: Sequence[str | int] | None, names: list[str]) -> list[str]:
    """Returns the names of columns, each of which is given by its name or its position."""
    return [names[position(key, names)] for key in keys or ()]


def position(key: str | int, names: list[str]) -> int:
    """Returns the position of a column, which is given by its name or its position."""
    if isinstance(key, int | np.integer) and 0 <= key < len(names):
        return int(key)
    if key not in names:
        raise ValueError(
            f"there is no column {key!r} among {printable.listed(names)}; check the spelling."
        )
    return names.index(str(key))


def greedy(rows: NDArray[Any]) -> list[int]:
    """Returns an order in which each next column is the one that those before it predict best.

    The first column is the one with the largest sum of squared rank correlations. A prediction is
    a linear regression of a column's ranks on the ranks of the columns before it, and the best one
    explains the largest share of the variance. Missing values have no influence.
    """
    some = _some(rows)
    linked = _correlations(np.stack([_ranks(column) for column in some.T], 1))
    order = [int((linked**2).sum(0).argmax())]
    while len(order) < len(linked):
        rest = [k for k in range(len(linked)) if k not in order]
        before = linked[np.ix_(order, order)]
        cross = linked[np.ix_(order, rest)]
        explained = (cross * np.linalg.lstsq(before, cross, rcond=None)[0]).sum(0)
        order.append(rest[int(explained.argmax())])
    return order


def _some(rows: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rows[:: max(1, len(rows) // RANKED)])


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
