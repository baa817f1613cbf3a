"""The ends of the columns' supports, exact in whatever dtype a model is converted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from nits.heads import Head


class Ends(nn.Module):
    """Where the supports of D columns start and end, shapes (D, 1), in the order of the heads."""

    low: Tensor
    high: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = tuple(heads)
        for name in ("low", "high"):
            self.register_buffer(name, torch.empty(0), persistent=False)
        self._set()

    def _set(self) -> None:
        """Sets both buffers to the heads' numbers, in the buffers' dtype and on their device."""
        for name in ("low", "high"):
            old: Tensor = getattr(self, name)
            ends = [[float(getattr(head, name))] for head in self.heads]
            setattr(self, name, torch.tensor(ends, dtype=old.dtype, device=old.device))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves and converts the ends; from float32 to float64 they regain their lost digits."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._set()
        return self
