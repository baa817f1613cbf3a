"""A joint density as one file, a description and tensors, in the layout of `nits.model.storage`.

Of masked matrices only the entries that the masks keep are stored.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import nits
from nits.model import storage
from nits.model.density import Density
from nits.weights.allowance import Allowance
from nits.weights.block_linear import BlockLinear

DTYPES = {"float32": torch.float32, "float64": torch.float64}

KINDS = {
    "nits": "nits.model.joint.NITS",
    "mixture": "nits.model.mixture.Mixture",
    "tempered": "nits.model.tempered.Tempered",
    "calibrated": "nits.model.calibrated.Calibrated",
    "whitened": "nits.model.whitened.Whitened",
    "symmetric": "nits.model.symmetric.Symmetric",
    "roles": "nits.model.random_roles.RandomRoles",
    "dequantized": "nits.images.dequantized.Dequantized",
}
"""The classes of densities that a file can hold, by the names used in files."""


def save(density: Density, path: str | Path, *, half: bool = False) -> None:
    """Writes a density, under a temporary name first.

    half: Whether to keep the weights in float16, for a smaller file; the density is as before
        but for rounding, and is loaded in the dtype that it has.
    """
    about = {
        "nits": nits.__version__,
        "kind": "density",
        "dtype": str(density.like.dtype).removeprefix("torch."),
        "density": density.description(),
    }
    storage.write(path, state(density, half=half), about)


def state(density: Density, *, half: bool = False) -> dict[str, Tensor]:
    """Returns the tensors of a density, of masked matrices only what the masks leave."""
    tensors = dict(density.state_dict())
    for name, module in density.named_modules():
        if isinstance(module, BlockLinear):
            tensors[f"{name}.weight"] = module.weight.detach()[module.mask]
    trained = {name for name, _ in density.named_parameters()} if half else set()
    return {
        name: (tensor.half() if name in trained else tensor).contiguous()
        for name, tensor in tensors.items()
    }


def restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Density:
    """Returns the density that a file describes."""
    density = built(about["density"], storage.allowance(tensors)).to(DTYPES[about["dtype"]])
    storage.fill(density, tensors)
    return density.eval()


def built(about: dict[str, Any], allowance: Allowance) -> Density:
    """Returns a density as described, with initial weights, if it is allowed so much."""
    if about.get("kind") not in KINDS:
        raise ValueError(
            f"kind must be one of {', '.join(KINDS)}, but is {about.get('kind')!r}; "
            "install a newer nits."
        )
    place, _, name = KINDS[about["kind"]].rpartition(".")
    found: Density = getattr(import_module(place), name).described(about, allowance)
    return found
