"""Tallies of parts of a table as one: that of all rows, as if one pass had seen them in order.

So parts can be read by several processes or nodes at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import choice, grids
from nits.tables.evidence.grids import Grid
from nits.tables.stream import tallies
from nits.tables.stream.tallies import Tally, Words, hashed, refuse_other, together


def merge(one: Tally | Words, other: Tally | Words) -> None:
    """Adds the tally of later rows to that of the rows before them."""
    refuse_other(one, other.like)
    if isinstance(one, Words) and isinstance(other, Words):
        _words(one, other)
    elif isinstance(one, Tally) and isinstance(other, Tally):
        _numbers(one, other)
    else:
        raise ValueError(
            f"column {one.name!r} must hold values of one kind in all files, but has strings in "
            "some and numbers in others; convert it."
        )


def _words(one: Words, other: Words) -> None:
    one.rows += other.rows
    one.holes += other.holes
    for value, count in other.counts.items():
        one.counts[value] = one.counts.get(value, 0) + count
    one.level = max(one.level, other.level)
    while True:
        step = 2**one.level
        one.counts = {v: n for v, n in one.counts.items() if hashed(v) % step == 0}
        if len(one.counts) <= tallies.MOST_VALUES:
            return
        one.level += 1


def _numbers(one: Tally, other: Tally) -> None:
    one.holes += other.holes
    one.infinite += other.infinite
    if not other.rows:
        one.numbered = one.numbered and other.numbered
        return
    values = one.alike(other.stored)
    one.rows += other.rows
    _order(one, other)
    one.low = _ends(one, other, other.low, one.low, reverse=False)
    one.high = _ends(one, other, other.high, one.high, reverse=True)
    if one.whole and other.whole:
        one.count(values, other.counts)
        return
    one.grid = _grid(one, other)
    one.whole = False
    one.values, one.counts = together(one.values, one.counts, values, other.counts)
    one.trim()


def _order(one: Tally, other: Tally) -> None:
    """Sees whether the rows of both are numbered one after another."""
    if one.first is None:
        one.first, one.begun = other.first, other.begun
        one.numbered = one.numbered and other.numbered
        return
    with np.errstate(over="ignore"):  # beyond 64 bits numbers begin anew, as in `Tally`
        on = other.first == one.first + (other.begun - one.begun)
    one.numbered = one.numbered and other.numbered and bool(on)


def _ends(
    one: Tally,
    other: Tally,
    later: list[tuple[Any, int]],
    found: list[tuple[Any, int]],
    *,
    reverse: bool,
) -> list[tuple[Any, int]]:
    """Returns the two outermost values of both, the first of equal ones first."""
    values = one.alike(other.as_stored(np.array([value for value, _ in later])))
    every = [*found, *zip(values, [place for _, place in later], strict=True)]
    return sorted(every, key=lambda pair: pair[0], reverse=reverse)[:2]


def _grid(one: Tally, other: Tally) -> Grid | None:
    """Returns the even grid that holds the values of both, if there is one."""
    points = _points(one), _points(other)
    if points[0] is None or points[1] is None:
        return None
    for grid, others in ((one.grid, points[1]), (other.grid, points[0])):
        if grid is not None and bool(grid.holds(others).all()):
            return grid
    return grids.find(np.unique(np.concatenate(points)))  # type: ignore[arg-type]


def _points(tally: Tally) -> NDArray[Any] | None:
    """Returns values that all others of the tally lie on a grid with; None if there is no grid."""
    if not tally.whole and tally.grid is None:
        return None
    if not tally.whole and tally.grid is not None and tally.grid.exact:
        return np.asarray(tally.grid.decode(np.arange(2)))
    return choice.stored(tally.stored, tally.like.dtype)
