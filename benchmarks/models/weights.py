"""The weights of NITS-MLP in a file, with the settings and support that its model is built from."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

import nits
from models.fitted import Settings
from models.ours import mlp
from nits.weights.block_linear import BlockLinear


def masks(model: nits.NITS) -> dict[str, Tensor]:
    """Returns where the triangular matrices are not zero, by their names in the state."""
    return {
        f"{name}.weight": layer.mask.bool()
        for name, layer in model.named_modules()
        if isinstance(layer, BlockLinear)
    }


def save(model: nits.NITS, settings: Settings, path: Path, *, half: bool) -> None:
    """Writes the weights, in float16 if half; triangular matrices without their zeros."""
    state, weights = model.state_dict(), dict(model.named_parameters())
    state |= {name: state[name][mask] for name, mask in masks(model).items()}
    halved = {name: t.half() if half and name in weights else t for name, t in state.items()}
    ends = {name: [getattr(head, name) for head in model.heads] for name in ("low", "high")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    save_file(
        {name: t.contiguous() for name, t in halved.items()},
        temporary,
        metadata={"settings": json.dumps(settings), "support": json.dumps(ends)},
    )
    temporary.replace(path)


def load(path: Path) -> nits.NITS:
    """Returns the model that `save` wrote, in float32."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    ends = json.loads(metadata["support"])
    older = {"whiten": False, "activation": "relu"}  # than these settings some files are
    model = mlp((ends["low"], ends["high"]), older | json.loads(metadata["settings"]))
    state = {name: t.float() if t.is_floating_point() else t for name, t in state.items()}
    for name, mask in masks(model).items():
        state[name] = torch.zeros(mask.shape).masked_scatter(mask, state[name])
    model.load_state_dict(state)
    return model.eval()
