"""Which entries the benchmark of answers gives and asks: by coins, or two columns of each row."""

from __future__ import annotations

import torch
from torch import Tensor

from nits.model.random_roles import Shares

COINS = 7
"""Seed of the coins that say which entries are given."""


class Coins(Shares):
    """Each entry is given by the toss of a coin, in place of a share that is uniform.

    often: In which share of the rows.
    """

    often = 1.0

    def draw(self, rows: int, columns: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Returns which entries are given and which are hidden."""
        given, hidden = super().draw(rows, columns, source)
        joint, here = torch.rand(2, rows, 1, generator=source)
        tossed = (torch.rand(rows, columns, generator=source) < 0.5) & (joint >= self.joint)
        given = torch.where(here < self.often, tossed, given)
        return given, hidden & ~given


class SomeCoins(Coins):
    """Coins in half of the rows."""

    often = 0.5


def coins(rows: int, columns: int) -> Tensor:
    """Returns which entries are given."""
    source = torch.Generator().manual_seed(COINS)
    return torch.rand(rows, columns, generator=source) < 0.5


def pairs(rows: int, columns: int) -> Tensor:
    """Returns two columns of each row that are asked with nothing given, at random."""
    source = torch.Generator().manual_seed(COINS)
    return torch.rand(rows, columns, generator=source).argsort(1) < 2
