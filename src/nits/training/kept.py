"""A copy of a model's state without the blocks of matrices that are zero by their masks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nits.weights.block_linear import BlockLinear

State = dict[str, Tensor]


class Kept:
    """The state of a model as it was when it was last taken.

    Of a masked matrix about half the entries are kept: a wide table's networks have few others.
    """

    def __init__(self, model: nn.Module) -> None:
        self.blocks = {
            f"{name}.weight".lstrip("."): module.blocks
            for name, module in model.named_modules()
            if isinstance(module, BlockLinear)
        }
        self.take(model.state_dict())

    def take(self, state: State) -> None:
        """Copies a state in place of the one before."""
        self.shapes = {name: t.shape for name, t in state.items()}
        self.parts = {name: self._parts(name, t) for name, t in state.items()}

    def _parts(self, name: str, t: Tensor) -> list[Tensor]:
        if name not in self.blocks:
            return [t.clone()]
        return [t[b.start : b.stop, : b.seen].clone() for b in self.blocks[name]]

    def state(self) -> State:
        """Returns the state, with zeros where it was left out."""
        return {name: self._whole(name, parts) for name, parts in self.parts.items()}

    def _whole(self, name: str, parts: list[Tensor]) -> Tensor:
        if name not in self.blocks:
            return parts[0]
        whole = torch.zeros(self.shapes[name], dtype=parts[0].dtype, device=parts[0].device)
        for b, part in zip(self.blocks[name], parts, strict=True):
            whole[b.start : b.stop, : b.seen] = part
        return whole
