"""The sizes of networks for images: those that have names, and how a file keeps one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nits.weights.allowance import Allowance
from nits.weights.causal_conv import ConvSize
from nits.weights.causal_window import WindowSize

ImageSize = ConvSize | WindowSize

SIZES: dict[str, ImageSize] = {
    "tiny": ConvSize(24, 4, (1, 2)),
    "small": ConvSize(),
    "window": WindowSize(),
    "paper-bsds300": ConvSize(98, 6),
    "paper-cifar10": ConvSize(156, 33, dropout=0.5),
}


def named(size: Any) -> ImageSize:
    """Returns a size that is given, or the one of that name."""
    known = size in SIZES if isinstance(size, str) else True
    if not known or not isinstance(size, str | ConvSize | WindowSize):
        raise ValueError(
            f"size must be one of {', '.join(SIZES)}, a nits.weights.ConvSize or a WindowSize, "
            f"but is {size!r}."
        )
    return SIZES[size] if isinstance(size, str) else size


def to_json(size: ImageSize) -> list[Any] | dict[str, Any]:
    """Returns the numbers of a convolution's size, and those of a window's with their names."""
    return size._asdict() if isinstance(size, WindowSize) else list(size)


def from_json(found: Sequence[Any] | Mapping[str, Any]) -> ImageSize:
    """Returns the size that `to_json` described."""
    return WindowSize(**found) if isinstance(found, Mapping) else ConvSize(*found)


def allowed(
    size: ImageSize,
    allowance: Allowance,
    *,
    shape: Sequence[int],
    context: int,
    inputs: int,
    outputs: int,
) -> None:
    """Refuses a size for which a file has too few numbers.

    inputs, outputs: Of one column.
    """
    about = {"size": size, "context": context}
    if isinstance(size, WindowSize):
        allowance.causal_window(about, shape, outputs)
    else:
        allowance.causal_conv(about, shape, inputs, outputs)
