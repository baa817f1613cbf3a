"""A joint density as one file, a description and tensors, in the layout of `nits.model.storage`.

Of masked matrices only the entries that the masks keep are stored.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

import nits
from nits.model import storage
from nits.model.density import Density
from nits.weights.block_linear import BlockLinear

KINDS = {
    "nits": "nits.model.joint.NITS",
    "mixture": "nits.model.mixture.Mixture",
    "whitened": "nits.model.whitened.Whitened",
    "dequantized": "nits.images.dequantized.Dequantized",
}
"""The classes of densities that a file can hold, by the names used in files."""


def save(density: Density, path: str | Path) -> None:
    """Writes a density to one file, whole or not at all."""
    about = {"nits": nits.__version__, "kind": "density", "density": density.description()}
    storage.write(path, state(density), about)


def state(density: Density) -> dict[str, Tensor]:
    """Returns the tensors of a density, and of masked matrices the entries that the masks keep."""
    tensors = dict(density.state_dict())
    for name, module in density.named_modules():
        if isinstance(module, BlockLinear):
            tensors[f"{name}.weight"] = module.weight.detach()[module.mask]
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Density:
    """Returns the density that a file describes."""
    density = built(about["density"])
    floating = next((t for t in tensors.values() if t.is_floating_point()), None)
    density = density if floating is None else density.to(floating.dtype)
    density.load_state_dict(tensors)
    return density.eval()


def built(about: dict[str, Any]) -> Density:
    """Returns a density as described, with initial weights."""
    if about.get("kind") not in KINDS:
        raise ValueError(
            f"kind must be one of {', '.join(KINDS)}, but is {about.get('kind')!r}; "
            "install a newer nits."
        )
    place, _, name = KINDS[about["kind"]].rpartition(".")
    found: Density = getattr(import_module(place), name).described(about)
    return found
