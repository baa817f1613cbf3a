"""Training checkpoints: one safetensors file of tensors and JSON, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from nits import atomic

FORMAT = "nits checkpoint 2"

State = dict[str, Tensor]


def write(path: Path, states: dict[str, State], record: dict[str, Any]) -> None:
    """Writes named groups of tensors and a JSON record to a temporary file, then renames it."""
    tensors = {
        f"{group}/{name}": tensor.detach().contiguous()
        for group, state in states.items()
        for name, tensor in state.items()
    }
    data = save(tensors, metadata={"format": FORMAT, "record": json.dumps(record)})
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, data)


def read(path: Path) -> tuple[dict[str, State], dict[str, Any]]:
    """Reads what `write` wrote."""
    if not path.is_file():
        raise FileNotFoundError(
            f"resume must be the path of a checkpoint, but there is no file {path}; check the path."
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = file.keys()
            flat = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ValueError(
            f"{path} must be a whole safetensors file, but is not ({error}); resume from another."
        ) from None
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "a safetensors file of another program")
        raise ValueError(f"{path} must be a {FORMAT}, but is {found}; pass a file that fit wrote.")
    states: dict[str, State] = {}
    for name, tensor in flat.items():
        group, _, rest = name.partition("/")
        states.setdefault(group, {})[rest] = tensor
    return states, json.loads(metadata["record"])


def optimizer_state(optimizer: torch.optim.Optimizer) -> State:
    """Returns an optimizer's tensors under flat names."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{key}": torch.as_tensor(value)
        for index, part in state.items()
        for key, value in part.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, state: State) -> None:
    """Puts back what `optimizer_state` returned."""
    parts: dict[int, State] = {}
    for name, tensor in state.items():
        index, _, key = name.partition(".")
        parts.setdefault(int(index), {})[key] = tensor
    whole = optimizer.state_dict()
    whole["state"] = parts
    optimizer.load_state_dict(whole)
