"""Densities that wrap another one and share its columns, order and context."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch import Tensor

from nits.model import persistence
from nits.model.density import Density
from nits.weights.allowance import Allowance


class Wrapped(Density):
    """A density that transforms its rows and scores them by another density.

    density: The other density.
    """

    kind: ClassVar[str]
    """What files call it."""

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
        """A tensor with the dtype and the device of inputs and outputs."""
        return self.density.like

    @property
    def weights_per_row(self) -> int:
        """Number of PNN weights evaluated for a row."""
        return self.density.weights_per_row

    @property
    def stepped_at_once(self) -> int:
        """Most rows that `steps` has memory for."""
        return self.density.stepped_at_once

    def description(self) -> dict[str, Any]:
        """Returns that of the density inside, as JSON can hold it."""
        return {"kind": self.kind, "density": self.density.description()}

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns one like that whose `description` this is, if it is allowed so much."""
        allowance.take(0)  # however often it is wrapped
        return cls(persistence.built(about["density"], allowance))


def _add_prefix(module: Wrapped, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Renames the weights of files from before 0.2, where the wrapper was the density itself."""
    own = {f"{prefix}{name}" for name, _ in module.named_buffers(recurse=False)}
    for name in [name for name in state if name.startswith(prefix) and name not in own]:
        if not name.startswith(f"{prefix}density."):
            state[f"{prefix}density.{name.removeprefix(prefix)}"] = state.pop(name)
