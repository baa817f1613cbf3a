"""What the weight model reads of each column: its value, and hat functions on the column's quantiles.

A hat is 1 at its own knot, 0 at the neighbouring knots and beyond, and straight in between. With knots at
quantiles the network sees where a value stands in its column however the column is spread: in a narrow spike
two values that differ by a thousandth of the range may fall under different hats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from nits import initial
from nits.heads import Head

LEAST_GAP = 1e-6
"""Least gap between knots, as a share of their range: where knots coincide the hats have a step."""

UNTRAINED = 3.0
"""Knots lie in [−3, 3] where the support is infinite, as far as it allows, until data say where."""


class Reading(nn.Module):
    """The features of D columns, in the order in which they are modelled."""

    knots: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = tuple(heads)
        parts = [_even(head) for head in self.heads]
        self.register_buffer("knots", torch.cat(parts), persistent=any(len(part) for part in parts))
        self.groups = [list(group) for _, group in groupby(range(len(heads)), key=self._kind)]

    def _kind(self, position: int) -> tuple[object, ...]:
        head = self.heads[position]
        return (*head.kind, head.knots)

    def forward(self, values: Tensor) -> Tensor:
        """Maps values, shape (D, N), to features, shape (Σ inputs, N)."""
        # An infinite value makes the row impossible, but must not make the weights NaN.
        values = values.masked_fill(torch.isinf(values), 0.0)
        knots = self.knots.split([head.knots for head in self.heads])
        parts = []
        for group in self.groups:
            here = torch.stack([knots[i] for i in group])
            read = self.heads[group[0]].reading(values[group[0] : group[-1] + 1])
            parts.append(features(read, here).movedim(0, 1).flatten(0, 1))
        return torch.cat(parts)

    def column(self, position: int, values: Tensor) -> Tensor:
        """Maps the values of one column, shape (N,), to its features, shape (inputs, N)."""
        head = self.heads[position]
        knots = self.knots.split([head.knots for head in self.heads])[position]
        return features(head.reading(values), knots)

    def start_at(self, values: Sequence[Tensor]) -> None:
        """Puts the knots at the quantiles of each column's values, shape (N,) each."""
        pairs = zip(self.heads, values, strict=True)
        found = [_at_quantiles(head.reading(column), head.knots) for head, column in pairs]
        self.knots.copy_(torch.cat(found))


def features(x: Tensor, knots: Tensor) -> Tensor:
    """Returns x, shape (*, N), and the hats of its knots, shape (*, K), together shape (1 + K, *, N)."""
    count = knots.shape[-1]
    if not count:
        return x.unsqueeze(0)
    least = LEAST_GAP * (knots[..., -1:] - knots[..., :1]) + torch.finfo(x.dtype).tiny
    steepness = 1 / torch.maximum(knots.diff(dim=-1), least)
    start, steepness = (t.movedim(-1, 0).unsqueeze(-1) for t in (knots[..., :-1], steepness))
    ramps = ((x - start) * steepness).clamp(0, 1)  # (K − 1, *, N)
    # About one hat in K is up at a time: √K gives each the size of an ordinary input.
    size = 0.8 * count**0.5
    hats = torch.cat([1 - ramps[:1], ramps[:-1] - ramps[1:], ramps[-1:]]) * size
    return torch.cat([x.unsqueeze(0), hats])


def _even(head: Head) -> Tensor:
    """Knots before any data: evenly spread over the support, or the part of it around zero."""
    low, high = head.reading_ends
    if math.isinf(low) or math.isinf(high):
        low, high = max(low, min(-UNTRAINED, high - 1)), min(high, max(UNTRAINED, low + 1))
    return torch.linspace(low, high, head.knots)


def _at_quantiles(x: Tensor, count: int) -> Tensor:
    if not count:
        return x[:0]
    return initial.quantiles(x, torch.linspace(0, 1, count, dtype=x.dtype, device=x.device))
