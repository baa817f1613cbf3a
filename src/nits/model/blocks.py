"""What is evaluated together: neighbouring columns of one kind, a few at a time, and chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from nits.heads.head import Head

CHUNK_BYTES = 2**27
"""What the weights of one chunk of rows may take where no gradient is recorded."""

FEWEST_ROWS, WHOLE_BLOCKS = 64, 1024
"""Of a chunk: products with fewer rows are slow, and kernels take so many."""

PIECE_BYTES = 2**22
"""What the weights of a piece of a run may take: they are written and read again while in the cache."""

WIDTHS = (32, 8, 2)
"""What compiled kernels take at once: a piece has a multiple of one of these columns, the last some more."""


class Run(NamedTuple):
    """Neighbouring columns of one kind: positions start … stop, with so many weights in all."""

    head: Head
    start: int
    stop: int
    weights: int


def runs(heads: Sequence[Head]) -> Iterator[Run]:
    """Yields the runs of columns in their order."""
    start = 0
    for i, head in enumerate(heads):
        if i + 1 == len(heads) or heads[i + 1].kind != head.kind:
            yield Run(heads[start], start, i + 1, sum(h.weights for h in heads[start : i + 1]))
            start = i + 1


def pieces(whole: Sequence[Run], row_bytes: int) -> Iterator[Run]:
    """Cuts runs into a few columns each, by what one weight of all rows takes; the last may be longer."""
    for head, start, stop, weights in whole:
        per_column = weights // (stop - start)
        fitting = max(WIDTHS[-1], PIECE_BYTES // max(1, per_column * row_bytes))
        width = fitting - fitting % next(width for width in WIDTHS if fitting >= width)
        cuts = [*range(start, max(start + 1, stop - width + 1), width), stop]
        for first, last in pairwise(cuts):
            yield Run(head, first, last, (last - first) * per_column)


def rows_at_once(row_bytes: int) -> int:
    """Returns how many rows a chunk has, by what the weights of one row take."""
    fitting = max(FEWEST_ROWS, CHUNK_BYTES // row_bytes)
    return fitting - fitting % min(fitting, WHOLE_BLOCKS)
