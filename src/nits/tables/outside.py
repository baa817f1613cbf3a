"""Which entries of drawn rows lie beyond the training values, equation (28).

An entry that lies beyond is told to the model as the end of the training values, which columns
modelled later read, as they do when a row is scored. Some entries lie beyond whatever the model
says. Of those whose number is among the outermost, a fixed share is moved beyond, and what comes
after them in the row is then drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.model.density import Density
from nits.tables.columns.beyond import End
from nits.tables.columns.column import LOWER, UPPER, Column

LEAST = 1e-12
"""The smallest share of a tail, whose sign must tell the two tails apart."""


class Outside:
    """The entries of N rows that lie beyond.

    columns: What they are, D of them.
    coins: Uniform numbers, shape (N, D); NaN where an entry is given and stays where it is.
    complete: Whether all values are known, so that no probability is left for holes.

    tails: The share of the upper tail up to an entry that lies there, minus that of the lower tail
        for an entry there, and NaN for all others, shape (N, D).
    """

    def __init__(
        self, columns: Sequence[Column], coins: NDArray[np.float64], complete: bool
    ) -> None:
        self.columns, self.complete = columns, complete
        self.tails = np.full(coins.shape, np.nan)
        self.places = np.full(coins.shape, np.nan, np.float32)
        self.left = np.full(coins.shape, np.nan)  # what is left of a coin, uniform again
        for i, column in enumerate(columns):
            self._begin(i, column, coins[:, i])

    def _begin(self, i: int, column: Column, coins: NDArray[np.float64]) -> None:
        """Draws the entries of a column that lie beyond whatever the model says."""
        ends = column.beyond
        share = column.known if self.complete else 1.0
        lower, upper = ends.lower.floor / share, ends.upper.floor / share
        self.left[:, i] = (coins - lower) / (1 - lower - upper)
        for side, at, part in (
            (LOWER, coins < lower, coins / (lower or 1.0)),
            (UPPER, coins > 1 - upper, (1 - coins) / (upper or 1.0)),
        ):
            self._put(np.flatnonzero(at), i, side, part[at])

    def _put(self, rows: NDArray[np.int64], i: int, side: int, share: NDArray[np.float64]) -> None:
        if not len(rows):
            return
        self.tails[rows, i] = side * np.maximum(share, LEAST)
        self.places[rows, i] = self.columns[i].end(side)
        self.left[rows, i] = np.nan

    def filled(
        self, density: Density, u: Tensor, kept: Tensor, context: Tensor | None, rows: Tensor
    ) -> Tensor:
        """Returns the numbers of some rows at probabilities u, shape (n, D).

        kept: Numbers that are given, NaN where there are none, shape (n, D).
        rows: Which rows they are, shape (n,).
        """
        within = [column.within for column in self.columns] if self.complete else None
        order = density.order.tolist()
        told = torch.where(kept.isnan(), self._told(rows, kept), kept)
        numbers = density.filled(u, told, context, within)
        again = torch.arange(len(u))
        while len(again := again[self._moved(numbers[again], rows[again], order, told, again)]):
            about = None if context is None else context[again]
            numbers[again] = density.filled(u[again], told[again], about, within)
        return numbers

    def _told(self, rows: Tensor, like: Tensor) -> Tensor:
        return torch.from_numpy(self.places[rows.numpy()]).to(like)

    def _moved(
        self, numbers: Tensor, rows: Tensor, order: list[int], told: Tensor, at: Tensor
    ) -> Tensor:
        """Moves the first entry of each row beyond that is to be; returns which rows have one.

        told: What the density is told, shape (n, D); rows `at` of it get all up to that entry.
        """
        found, index = numbers.cpu().numpy(), rows.numpy()
        first = np.full(len(index), len(order))
        for rank, i in enumerate(order):
            ends = self.columns[i].beyond
            for side, end in ((LOWER, ends.lower), (UPPER, ends.upper)):
                share = end.slope / ends.left
                hit = _outermost(end, found[:, i]) & (self.left[index, i] < share)
                hit &= first == len(order)
                self._put(index[hit], i, side, self.left[index[hit], i] / (share or 1.0))
                first[hit] = rank
        moved = np.flatnonzero(first < len(order))
        there = self.places[index[moved]]
        own = torch.from_numpy(np.where(np.isnan(there), found[moved], there)).to(told)
        settled = torch.from_numpy(np.argsort(order) <= first[moved, None])
        told[at[moved]] = torch.where(settled, own, told[at[moved]])
        return torch.from_numpy(moved)


def _outermost(end: End, numbers: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Returns which numbers of a column are outermost at an end with a tail."""
    if not end:
        return np.zeros(len(numbers), bool)
    low, high = (np.float32(number) for number in end.outer)
    return (numbers > low) & (numbers <= high)
