"""A density made of another one, whose columns, order and context it shares."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nits.model.density import Density


class Wrapped(Density):
    """What densities have in common that change the numbers which another one describes.

    density: The other one.
    """

    def __init__(self, density: Density) -> None:
        super().__init__()
        self.density = density
        self.heads = density.heads
        self.register_load_state_dict_pre_hook(_add_prefix)  # type: ignore[no-untyped-call]

    @property
    def context_features(self) -> int:
        """C, the number of features of the context; 0 if there is none."""
        return self.density.context_features

    @property
    def order(self) -> Tensor:
        """The columns in the order in which they are modelled, shape (D,)."""
        return self.density.order

    @property
    def like(self) -> Tensor:
        """A tensor of the dtype and on the device of the numbers that go in and come out."""
        return self.density.like

    @property
    def weights_per_row(self) -> int:
        """How many PNN weights are evaluated for a row."""
        return self.density.weights_per_row

    @property
    def stepped_at_once(self) -> int:
        """How many rows `steps` can hold the state of."""
        return self.density.stepped_at_once


def _add_prefix(module: Wrapped, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Renames the weights of files from before 0.2, whose wrapped densities were one with their wrapping."""
    own = {f"{prefix}{name}" for name, _ in module.named_buffers(recurse=False)}
    for name in [name for name in state if name.startswith(prefix) and name not in own]:
        if not name.startswith(f"{prefix}density."):
            state[f"{prefix}density.{name.removeprefix(prefix)}"] = state.pop(name)
