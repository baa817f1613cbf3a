"""Rows of a table that is larger than memory: a few of them are kept, the others come in pieces.

What looks at single rows, such as the start of the weights, validation and checks, looks at those
that are kept. Training reads all others piece by piece: see `nits.training.lanes`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nits.training.lanes import Lanes
from nits.training.rows import Batch, Feed, Rows

MOST_HELD_OUT = 2**17
"""Rows of a fold that are held out at most: they stay in memory."""


MOST_SPREAD = 2**16
"""Rows at most that the weights start from: what networks read of them is in memory all at once."""


class Piece(NamedTuple):
    """Rows that are next to each other in the table, in memory."""

    x: Tensor
    context: Tensor | None


class Pieces(Protocol):
    """A table in pieces."""

    @property
    def sizes(self) -> Sequence[int]:
        """How many rows each piece has, in the order of the table."""

    def read(self, piece: int) -> Piece:
        """Returns the rows of a piece; several threads may call this at once."""

    def digest(self) -> str:
        """Returns a checksum of what the pieces are read from."""


class Besides(NamedTuple):
    """All rows besides some, whose positions in the table these are, ascending."""

    held_out: Tensor


class Streamed(Rows):
    """The rows of a table in pieces. Positions are those in the table.

    kept: Some of the rows, in memory.
    places: Their positions in the table, ascending.
    even: Positions of kept rows that are evenly spread over the table.
    away: Positions of rows that are left out, ascending.
    """

    def __init__(
        self,
        pieces: Pieces,
        kept: Rows,
        places: Tensor,
        even: Tensor,
        away: Tensor | None = None,
    ) -> None:
        super().__init__(kept.x, kept.context, None, kept.read)
        self.pieces, self.kept, self.even = pieces, kept, even
        self.places: Tensor = places
        self.away = torch.empty(0, dtype=torch.long) if away is None else away
        self.total = sum(pieces.sizes)

    def __len__(self) -> int:
        return self.total - len(self.away)

    def take(self, index: Tensor, like: Tensor) -> Batch:
        """Returns kept rows by their positions in the table."""
        return self.kept.take(self._found(index), like)

    def subset(self, index: Tensor) -> Rows:
        """Returns some of the kept rows, by their positions in the table."""
        return self.kept.subset(self._found(index))

    def view(self, index: Any) -> Rows:
        """Returns some of the kept rows, by their positions, or all rows of the table but some."""
        if isinstance(index, Besides):
            return Streamed(self.pieces, self.kept, self.places, self.even, index.held_out)
        return self.kept.view(self._found(index))

    def batches(self, size: int, like: Tensor) -> Iterator[Batch]:
        """Is refused: only training reads all rows."""
        raise ValueError("rows of a table in pieces must be trained on, not scored one by one.")

    def parts(self) -> Iterator[Tensor]:
        """Yields x of the kept rows."""
        return self.kept.parts()

    def values(self, index: Tensor) -> Tensor:
        """Returns x of kept rows by their positions in the table."""
        return self.kept.values(self._found(index))

    def spread(self, count: int) -> Tensor:
        """Returns the positions of kept rows, evenly spread over the table, of at most `count`."""
        even = self.even[~torch.isin(self.even, self.away)]
        count = min(count, len(even), MOST_SPREAD)
        chosen = torch.linspace(0, len(even) - 1, count, dtype=torch.float64)
        return even[chosen.long()]

    def feed(self, size: int, seed: int, part: slice = slice(None)) -> Feed:
        """Returns what reads the pieces ahead and hands out batches."""
        return Lanes(self, size, seed, part)

    def folds(self, number: int, fraction: float, seed: int) -> list[tuple[Besides, Tensor]]:
        """Returns of each fold the rows to learn from, and those to hold out; no row is in two."""
        cuts = held_out(self.total, number, fraction, seed)
        return [(Besides(cut), cut) for cut in cuts]

    def digest(self) -> str:
        """Returns a checksum of the files, of the kept rows, and of which rows are left out."""
        found = hashlib.sha256(self.pieces.digest().encode())
        found.update(self.kept.digest().encode())
        found.update(self.away.numpy().data)
        return found.hexdigest()

    def _found(self, index: Tensor) -> Tensor:
        """Returns which of the kept rows have these positions."""
        at = torch.searchsorted(self.places, index).clamp(max=max(len(self.places) - 1, 0))
        if not bool((self.places[at] == index).all()):
            raise ValueError("only rows that were kept can be looked at; ask for others.")
        return at


def held_out(total: int, number: int, fraction: float, seed: int) -> list[Tensor]:
    """Returns the positions that each of several folds holds out, ascending; none if too few."""
    size = min(int(total * min(fraction, 1 / max(number, 2))), MOST_HELD_OUT)
    if size < 1 or total - size < 2:
        return [torch.empty(0, dtype=torch.long)] * number
    source = np.random.default_rng(seed)
    chosen = source.choice(total, number * size, replace=False)
    return [torch.from_numpy(np.sort(cut)) for cut in np.split(chosen, number)]
