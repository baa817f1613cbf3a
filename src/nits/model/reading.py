"""What the weight model reads of each column: its features, and whether it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from nits.heads import Head


class Reading(nn.Module):
    """The features of D columns, in the order in which they are modelled, and the knots of their hats."""

    knots: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = tuple(heads)
        parts = [head.even_knots() for head in self.heads]
        self.register_buffer("knots", torch.cat(parts), persistent=any(len(part) for part in parts))
        self.groups = [list(group) for _, group in groupby(range(len(heads)), key=self._kind)]

    def _kind(self, position: int) -> tuple[object, ...]:
        head = self.heads[position]
        return (*head.kind, head.knots, head.optional)

    def _split_knots(self) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = self.knots.split([head.knots for head in self.heads])
        return parts

    def forward(self, values: Tensor) -> Tensor:
        """Maps values, shape (D, N), to features, shape (Σ inputs, N)."""
        # An infinite value makes the row impossible, but must not make the weights NaN.
        values = values.masked_fill(torch.isinf(values), 0.0)
        knots, parts = self._split_knots(), []
        for group in self.groups:
            head, here = self.heads[group[0]], values[group[0] : group[-1] + 1]
            found = _features(head, here, torch.stack([knots[i] for i in group]))
            parts.append(found.movedim(0, 1).flatten(0, 1))
        return torch.cat(parts)

    def column(self, position: int, values: Tensor) -> Tensor:
        """Maps the values of one column, shape (N,), to its features, shape (inputs, N)."""
        return _features(self.heads[position], values, self._split_knots()[position])

    def start_at(self, values: Iterable[Tensor]) -> None:
        """Puts the knots at quantiles of each column's values, shape (N,) each, missing ones left out."""
        pairs = zip(self.heads, values, strict=True)
        found = [head.knots_at(column[~torch.isnan(column)]) for head, column in pairs]
        self.knots.copy_(torch.cat(found))


def _features(head: Head, x: Tensor, knots: Tensor) -> Tensor:
    """Returns a head's features, and, if it is optional, zeros and a flag where the value is missing."""
    if not head.optional:
        return head.features(x, knots)
    missing = torch.isnan(x)
    found = head.features(x.masked_fill(missing, 0.0), knots).masked_fill(missing, 0.0)
    return torch.cat([found, missing.to(x.dtype).unsqueeze(0)])
