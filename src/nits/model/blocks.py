"""The one plan for cutting a table: groups of columns of one kind, a few columns and some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from nits.heads.head import Head

CHUNK_BYTES = 2**27
"""What the weights of one chunk of rows may take where no gradient is recorded."""

FEWEST_ROWS = 64
"""Rows of a chunk at the least: products with fewer are slow."""

WHOLE_BLOCKS = 1024
"""Chunks are multiples of this many rows where they are larger: kernels take as many at once."""

PIECE_BYTES = 2**22
"""What the weights of a piece of a group may take: they are written and read again in the cache."""

WIDTHS = (32, 8, 2)
"""Columns that compiled kernels take at once: a piece has a multiple of one of these, the last more."""


class Group(NamedTuple):
    """Neighbouring columns of one kind, at these positions, with so many weights in all."""

    head: Head
    columns: slice
    weights: int


def groups(heads: Sequence[Head]) -> Iterator[Group]:
    """Yields the groups of columns in their order."""
    start = 0
    for i, head in enumerate(heads):
        if i + 1 == len(heads) or not _alike(head, heads[i + 1]):
            weights = sum(h.weights for h in heads[start : i + 1])
            yield Group(heads[start], slice(start, i + 1), weights)
            start = i + 1


def _alike(head: Head, other: Head) -> bool:
    """Returns whether two columns are evaluated together."""
    return head.kind == other.kind and head.optional == other.optional


def pieces(whole: Sequence[Group], row_bytes: int) -> Iterator[Group]:
    """Cuts groups into a few columns each; `row_bytes` is what one weight of all rows takes."""
    for head, columns, weights in whole:
        start, stop = columns.start, columns.stop
        per_column = weights // (stop - start)
        fitting = max(WIDTHS[-1], PIECE_BYTES // max(1, per_column * row_bytes))
        width = fitting - fitting % next(width for width in WIDTHS if fitting >= width)
        cuts = [*range(start, max(start + 1, stop - width + 1), width), stop]
        for first, last in pairwise(cuts):
            yield Group(head, slice(first, last), (last - first) * per_column)


def rows_at_once(row_bytes: int) -> int:
    """Returns how many rows a chunk has; `row_bytes` is what the weights of one row take."""
    fitting = max(FEWEST_ROWS, CHUNK_BYTES // row_bytes)
    return fitting - fitting % min(fitting, WHOLE_BLOCKS)
