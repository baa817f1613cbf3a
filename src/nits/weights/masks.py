"""Which unit may read which: ranks, and the block lower-triangular masks that they give.

A unit of rank r may depend on the columns at positions 0 … r − 1. So it may read units of its own
or a lower rank, and the weights of the column at position p may read units of rank at most p.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Block(NamedTuple):
    """Rows start … stop of a matrix: they read columns 0 … seen, up to `before` without a mask."""

    start: int
    stop: int
    before: int
    seen: int


def hidden_ranks(units: int, columns: int, *, context: bool) -> Tensor:
    """Returns the ranks of hidden units, sorted and even: 1 … D − 1, with a context also 0."""
    least = 0 if context or columns == 1 else 1
    choices = columns - least
    return least + torch.arange(units) * choices // units


def input_ranks(widths: tuple[int, ...]) -> Tensor:
    """Returns the least rank that may read each input: one more than its column's position."""
    return torch.repeat_interleave(torch.arange(len(widths)) + 1, torch.tensor(widths))


def output_ranks(widths: tuple[int, ...]) -> Tensor:
    """Returns the greatest rank that each output may read: its column's position."""
    return torch.repeat_interleave(torch.arange(len(widths)), torch.tensor(widths))


def mask(row_ranks: Tensor, column_ranks: Tensor) -> Tensor:
    """Returns which rows may read which columns: those of the same or a lower rank."""
    return row_ranks.unsqueeze(1) >= column_ranks


def blocks(row_ranks: Tensor, column_ranks: Tensor, count: int) -> tuple[Block, ...]:
    """Cuts the rows into about `count` blocks, at changes of rank."""
    rows = len(row_ranks)
    cuts = [0, rows]
    for k in range(1, count):
        rank = row_ranks[rows * k // count]
        cuts.append(int(torch.searchsorted(row_ranks, rank)))
    cuts = sorted(set(cuts))
    seen = [
        int(torch.searchsorted(column_ranks, row_ranks[stop - 1], right=True)) for stop in cuts[1:]
    ]
    before = [0, *seen[:-1]]
    return tuple(map(Block, cuts[:-1], cuts[1:], before, seen))
