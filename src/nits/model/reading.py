"""The features of each column that the weight model reads: value, hats, and whether it is missing.

A hat is 1 at its own knot, 0 at the neighbouring knots and beyond, and linear in between. With
knots at quantiles the network sees the rank of a value in its column, whatever the distribution: in
a narrow spike, values that differ by a thousandth of the range may lie under different hats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

import torch
from torch import Tensor, nn

from nits.heads import Head
from nits.pnn import initial

LEAST_GAP = 1e-6
"""Least gap between knots, as a fraction of their range: hats step where knots coincide."""

UNTRAINED = 3.0
"""Before training, knots lie in [−3, 3] if the support is infinite, or as near as it allows."""


class Reading(nn.Module):
    """The features of D columns in modelling order, and the knots of their hats."""

    knots: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = tuple(heads)
        parts = [even_knots(*head.reading_ends, head.knots) for head in self.heads]
        self.register_buffer("knots", torch.cat(parts), persistent=any(len(part) for part in parts))
        self.groups = [list(group) for _, group in groupby(range(len(heads)), key=self._kind)]
        self.reach = list(accumulate((head.knots for head in self.heads), initial=0))

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
        knots = self._split_knots()
        parts = []
        for group in self.groups:
            head = self.heads[group[0]]
            here = values[group[0] : group[-1] + 1]
            found = features_of(head, here, torch.stack([knots[i] for i in group]))
            parts.append(found.movedim(0, 1).flatten(0, 1))
        return torch.cat(parts)

    def of_rows(self, rows: Tensor) -> Tensor:
        """Maps rows, shape (N, D), to rows of features, shape (N, Σ inputs)."""
        found: Tensor = self(rows.t())
        return found.t().contiguous()

    def column(self, position: int, values: Tensor) -> Tensor:
        """Maps the values of one column, shape (N,), to its features, shape (inputs, N)."""
        # Cutting out all columns' knots for each column would cost the square of their number.
        knots = self.knots[self.reach[position] : self.reach[position + 1]]
        return features_of(self.heads[position], values, knots)

    def start_at(self, values: Iterable[Tensor]) -> None:
        """Puts the knots at quantiles of each column's values, shape (N,), without missing ones."""
        pairs = zip(self.heads, self._split_knots(), values, strict=True)
        found = [_knots(head, old, column[~torch.isnan(column)]) for head, old, column in pairs]
        self.knots.copy_(torch.cat(found))


def features_of(head: Head, x: Tensor, knots: Tensor) -> Tensor:
    """Returns a head's features; if it is optional, with a flag, and zeros for missing values."""
    if not head.optional:
        return _with_hats(head.features(x), knots)
    missing = torch.isnan(x)
    found = _with_hats(head.features(x.masked_fill(missing, 0.0)), knots)
    return torch.cat([found.masked_fill(missing, 0.0), missing.to(x.dtype).unsqueeze(0)])


def _with_hats(features: Tensor, knots: Tensor) -> Tensor:
    """Inserts the hats of the first feature after it, if there are knots."""
    if not knots.shape[-1]:
        return features
    return torch.cat([features[:1], hats(features[0], knots), features[1:]])


def hats(x: Tensor, knots: Tensor) -> Tensor:
    """Returns the hats of x, shape (*, N), with knots, shape (*, K), as shape (K, *, N)."""
    least = LEAST_GAP * (knots[..., -1:] - knots[..., :1]) + torch.finfo(x.dtype).tiny
    steepness = 1 / torch.maximum(knots.diff(dim=-1), least)
    start, steepness = (t.movedim(-1, 0).unsqueeze(-1) for t in (knots[..., :-1], steepness))
    ramps = ((x - start) * steepness).clamp(0, 1)  # (K − 1, *, N)
    # About one hat in K is up at a time: √K gives each the size of an ordinary input.
    size: float = 0.8 * knots.shape[-1] ** 0.5
    found = torch.cat([1 - ramps[:1], ramps[:-1] - ramps[1:], ramps[-1:]])
    return found * size


def even_knots(low: float, high: float, count: int) -> Tensor:
    """Returns knots before any data: evenly spaced over the support, or its part around zero."""
    if math.isinf(low) or math.isinf(high):
        low, high = max(low, min(-UNTRAINED, high - 1)), min(high, max(UNTRAINED, low + 1))
    return torch.linspace(low, high, count)


def _knots(head: Head, old: Tensor, x: Tensor) -> Tensor:
    """Returns knots at evenly spaced quantiles of x, shape (N,), or the old ones if x is empty."""
    if not head.knots or not len(x):
        return old
    levels = torch.linspace(0, 1, head.knots, dtype=x.dtype, device=x.device)
    return initial.quantiles(head.hat_values(x), levels)
