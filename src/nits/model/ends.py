"""The ends of the columns' supports, kept to the last digit whatever dtype and device a model moves to."""

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
        """Sets both buffers from the heads' own numbers, in the dtype and on the device they have."""
        for name in ("low", "high"):
            old: Tensor = getattr(self, name)
            ends = [[float(getattr(head, name))] for head in self.heads]
            setattr(self, name, torch.tensor(ends, dtype=old.dtype, device=old.device))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves and converts as modules do; float32 ends made float64 get the digits they lacked."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._set()
        return self
