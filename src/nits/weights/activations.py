"""The activation functions that files and settings can name."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

Activation = Callable[[Tensor], Tensor]

NAMES: dict[str, Activation] = {
    "relu": functional.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
}


def name_of(function: Activation) -> str:
    """Returns the name under which a file describes an activation."""
    for name, known in NAMES.items():
        if function is known:
            return name
    raise ValueError(
        f"a model can be saved with the activation {', '.join(NAMES)} of torch.nn.functional, "
        f"but has {function!r}; save its state_dict() and build the model in code."
    )


def named(name: str) -> Activation:
    """Returns the activation of a name."""
    if name not in NAMES:
        raise ValueError(
            f"an activation must have one of the names {', '.join(NAMES)}, but has {name!r}."
        )
    return NAMES[name]


def checked(activation: Activation) -> Activation:
    """Returns the activation, or says that it is none."""
    if not callable(activation):
        raise TypeError(
            f"activation must be a function, but is {activation!r}; "
            "pass one such as torch.nn.functional.relu."
        )
    return activation
