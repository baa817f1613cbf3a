"""Training checkpoints: one safetensors file of tensors and JSON, written whole or not at all.

A checksum of all contents reveals a damaged file, and every number is checked before it is used:
a file from a stranger is refused in one sentence, or continues a run, but does nothing else.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from nits import atomic

FORMAT = "nits checkpoint 3"

State = dict[str, Tensor]

COUNTS = ("step", "steps", "rates")
"""What an optimizer has one number of; all else has the shape of the weights."""


def write(path: Path, states: dict[str, State], record: dict[str, Any]) -> None:
    """Writes named groups of tensors and a JSON record to a temporary file, then renames it."""
    tensors = {
        f"{group}/{name}": tensor.detach().contiguous()
        for group, state in states.items()
        for name, tensor in state.items()
    }
    words = json.dumps(record)
    metadata = {"format": FORMAT, "record": words, "sha256": digest(tensors, words)}
    data = save(tensors, metadata=metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, data)


class NoCheckpointError(OSError):
    """A checkpoint could not be written, which was found before any work was done."""


def try_out(path: Path) -> None:
    """Refuses a checkpoint that could not be written, before training."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.try_out(path)
    except OSError as error:
        raise NoCheckpointError(f"the checkpoint cannot be kept: {error}") from None


@contextmanager
def dispensable(path: Path) -> Iterator[None]:
    """Has the work go on if its checkpoint cannot be written, and warns: it is worth more."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        warnings.warn(
            f"the checkpoint {path} could not be written ({reason}), so the work goes on without "
            "it; make room.",
            stacklevel=2,
        )


def digest(tensors: State, words: str) -> str:
    """Returns the SHA-256 of the record, and of the tensors with their names and shapes."""
    found = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        t = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        if t.numel():
            found.update(t.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


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
    except (SafetensorError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{path} must be a whole safetensors file, but is not ({error}); resume from another."
        ) from None
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "a safetensors file of another program")
        raise ValueError(f"{path} must be a {FORMAT}, but is {found}; pass a file that fit wrote.")
    words = metadata.get("record", "")
    if metadata.get("sha256") != digest(flat, words):
        raise ValueError(
            f"{path} is damaged: its checksum does not match; resume from another checkpoint."
        )
    states: dict[str, State] = {}
    for name, tensor in flat.items():
        group, _, rest = name.partition("/")
        states.setdefault(group, {})[rest] = tensor
    with described(path):
        record = json.loads(words)
        if not isinstance(record, dict) or not isinstance(record.get("fingerprint"), dict):
            raise ValueError("its record has no fingerprint")
    return states, record


@contextmanager
def described(path: Path) -> Iterator[None]:
    """Turns what goes wrong with a malformed record into a ValueError of one sentence."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(
            f"{path} does not hold a run that can go on ({reason}); resume from another checkpoint."
        ) from None


def count(value: Any, name: str) -> int:
    """Checks a number of steps."""
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{name} must be a count")
    return value


def number(value: Any, name: str) -> float:
    """Checks a number, which may be infinite or NaN."""
    if type(value) not in (int, float):
        raise ValueError(f"{name} must be a number")
    return float(value)


def listed(value: Any, name: str) -> list[Any]:
    """Checks a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list")
    return value


def words(value: Any, name: str) -> list[str]:
    """Checks a list of strings."""
    if not all(isinstance(item, str) for item in listed(value, name)):
        raise ValueError(f"{name} must be text")
    return list(value)


def refuse_nan(state: State, names: set[str]) -> None:
    """Refuses weights that are no finite numbers.

    names: Of the weights; what else a state holds, such as the ends of supports, may be infinite.
    """
    for name, tensor in state.items():
        whole = torch.isfinite(tensor) if name in names else ~torch.isnan(tensor)
        if not bool(whole.all()):
            raise ValueError(f"{name} has numbers that are not finite")


def optimizer_state(optimizer: torch.optim.Optimizer) -> State:
    """Returns an optimizer's tensors under flat names."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{key}": torch.as_tensor(value).clone()  # runs of a team share some
        for index, part in state.items()
        for key, value in part.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, state: State) -> None:
    """Puts back what `optimizer_state` returned."""
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    parts: dict[int, State] = {}
    for name, tensor in state.items():
        index, _, key = name.partition(".")
        shape = () if key in COUNTS else tuple(weights[_position(index, len(weights))].shape)
        if tuple(tensor.shape) != shape:
            raise ValueError(f"the optimizer's {name} has shape {tuple(tensor.shape)}, not {shape}")
        parts.setdefault(int(index), {})[key] = tensor
    _refuse_others(optimizer, parts)
    whole = optimizer.state_dict()
    whole["state"] = parts
    optimizer.load_state_dict(whole)


def _position(text: str, count: int) -> int:
    if not text.isdecimal() or int(text) >= count:
        raise ValueError(f"the optimizer has no weights {text[:20]!r}")
    return int(text)


def _refuse_others(optimizer: torch.optim.Optimizer, parts: dict[int, State]) -> None:
    """Refuses the state of another optimizer; torch's AdamW has none before its first step."""
    begun = optimizer.state_dict()["state"]
    expected = {index: set(part) for index, part in begun.items()}
    found = {index: set(part) for index, part in parts.items()}
    adamw = all(keys == {"step", "exp_avg", "exp_avg_sq"} for keys in found.values())
    if (expected or not adamw) and found != expected:
        raise ValueError("the state is that of another optimizer")
