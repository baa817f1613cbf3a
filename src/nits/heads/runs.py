"""Neighbouring columns of one kind, which are evaluated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nits.heads.head import Head


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
