"""The one plan for cutting a table into chunks of rows and groups of columns of one kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from nits.heads.head import Head

CHUNK_BYTES = 2**27
"""Most bytes of the weights of one chunk of rows where no gradient is recorded."""

FEWEST_ROWS = 64
"""Least number of rows of a chunk: matrix products with fewer are slow."""

WHOLE_BLOCKS = 1024
"""Larger chunks are multiples of this number of rows, which kernels take at once."""

PIECE_BYTES = 2**22
"""Most bytes of the weights of a piece of a group: they are read while still in the cache."""

WIDTHS = (32, 8, 2)
"""Columns per call of compiled kernels: every piece but the last has a multiple of one of them."""


class Group(NamedTuple):
    """Neighbouring columns of one kind: their head, positions, and total number of weights."""

    head: Head
    columns: slice
    weights: int


def groups(heads: Sequence[Head]) -> Iterator[Group]:
    """Yields the groups of columns in order."""
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
    """Cuts groups into a few columns each; `row_bytes` are the bytes of one weight of all rows."""
    for head, columns, weights in whole:
        start, stop = columns.start, columns.stop
        per_column = weights // (stop - start)
        fitting = max(WIDTHS[-1], PIECE_BYTES // max(1, per_column * row_bytes))
        width = fitting - fitting % next(width for width in WIDTHS if fitting >= width)
        cuts = [*range(start, max(start + 1, stop - width + 1), width), stop]
        for first, last in pairwise(cuts):
            yield Group(head, slice(first, last), (last - first) * per_column)


def rows_at_once(row_bytes: int) -> int:
    """Returns the number of rows of a chunk; `row_bytes` are the bytes of one row's weights."""
    fitting = max(FEWEST_ROWS, CHUNK_BYTES // row_bytes)
    return fitting - fitting % min(fitting, WHOLE_BLOCKS)
