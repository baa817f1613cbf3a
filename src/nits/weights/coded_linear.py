"""The last layer of a network for many columns: a few codes per column, then its PNN weights.

    θ_i = V_i c_i + b_i,    c = (mask ⊙ U) h + d

A full last layer has Σ P rows, one per PNN weight, each as wide as the network: nearly all of the
memory of a wide table. Here U has only a few rows per column, and V_i is of shape (P, codes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise

import torch
from torch import Tensor, nn

from nits import checks
from nits.weights import masks
from nits.weights.block_linear import BlockLinear


def last_layer(
    outputs: Sequence[int],
    ranks: Tensor,
    codes: int | None,
    generator: torch.Generator | None,
) -> BlockLinear | CodedLinear:
    """Returns a last layer through codes, or a full one if there are none; see `CodedLinear`."""
    if codes is not None:
        checks.positive("codes", codes)
        return CodedLinear(outputs, ranks, codes, generator)
    written = masks.output_ranks(tuple(outputs))
    return BlockLinear(written, ranks, gain=0.5, generator=generator)


class CodedLinear(nn.Module):
    """θ from hidden units h, shape (hidden, N), through a few codes of each column.

    outputs: Number of PNN weights of each column, P.
    ranks: Ranks of the hidden units, sorted.
    codes: Codes of each column.
    generator: What initial weights are drawn from.
    """

    def __init__(
        self,
        outputs: Sequence[int],
        ranks: Tensor,
        codes: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.outputs, self.width = tuple(outputs), codes
        written = masks.output_ranks((codes,) * len(outputs))
        self.codes = BlockLinear(written, ranks, generator=generator)
        self.weight = nn.Parameter(torch.zeros(sum(outputs), codes))
        self.bias = nn.Parameter(torch.zeros(sum(outputs)))
        ends = [0, *accumulate(outputs)]
        self.column_at = {end: column for column, end in enumerate(ends)}
        lengths = [len(list(run)) for _, run in groupby(outputs)]
        cuts = [ends[column] for column in accumulate(lengths, initial=0)]
        self.runs = list(pairwise(cuts))
        with torch.no_grad():
            self.weight.normal_(std=0.5 * codes**-0.5, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x, shape (hidden, N), to shape (Σ outputs, N)."""
        codes = self.codes(x)
        return torch.cat([self._product(start, stop, codes) for start, stop in self.runs])

    def parts(self, x: Tensor, sizes: Sequence[int]) -> Iterable[Tensor]:
        """Returns the result in parts of these sizes, each of some columns of one P."""
        codes = self.codes(x)
        cuts = pairwise(accumulate(sizes, initial=0))
        return tuple(self._product(start, stop, codes) for start, stop in cuts)

    def rows(self, start: int, stop: int, x: Tensor) -> Tensor:
        """Returns rows start … stop of the result, those of some columns; not differentiable."""
        first, last = self.column_at[start], self.column_at[stop]
        codes = self.codes.rows(first * self.width, last * self.width, x)
        return self._columns(start, stop, codes)

    def _product(self, start: int, stop: int, codes: Tensor) -> Tensor:
        first, last = self.column_at[start], self.column_at[stop]
        return self._columns(start, stop, codes[first * self.width : last * self.width])

    def _columns(self, start: int, stop: int, codes: Tensor) -> Tensor:
        """Returns rows start … stop from the codes of their columns, those of one P at once."""
        inner = [end for _, end in self.runs if start < end < stop]
        sizes = [
            (self.column_at[high] - self.column_at[low]) * self.width
            for low, high in pairwise([start, *inner, stop])
        ]
        runs = zip(pairwise([start, *inner, stop]), codes.split(sizes), strict=True)
        found = [self._alike(low, high, own) for (low, high), own in runs]
        return found[0] if len(found) == 1 else torch.cat(found)

    def _alike(self, start: int, stop: int, codes: Tensor) -> Tensor:
        """Returns rows start … stop, of columns of one P, from the codes of these columns."""
        count = self.column_at[stop] - self.column_at[start]
        V = self.weight[start:stop].view(count, -1, self.width)
        b = self.bias[start:stop].view(count, -1, 1)
        return torch.baddbmm(b, V, codes.view(count, self.width, -1)).flatten(0, 1)
