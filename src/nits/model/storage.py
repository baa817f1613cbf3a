"""The layout of model files: tensors and a description in JSON, in one safetensors file.

Reading executes nothing from the file. A checksum of all contents reveals a damaged file.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from nits import atomic
from nits.weights.allowance import Allowance

FORMAT = 1
"""Version of the layout: files of later versions are rejected."""

LENGTH = ALIGNMENT = 8
"""Bytes of the header's length, and of the multiple that the header has."""


def write(path: str | Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """Writes tensors and their description."""
    about = json.dumps(_finite(description), sort_keys=True, allow_nan=False)
    metadata = {
        "format": "nits",
        "version": str(FORMAT),
        "about": about,
        "sha256": digest(tensors, about),
    }
    atomic.write(Path(path), *_sorted(to_bytes(tensors, metadata)))


def _sorted(data: bytes) -> tuple[bytes, memoryview]:
    """Returns a safetensors file with its metadata in order: the same model has the same bytes.

    Header and tensors are apart, so that these are not copied.
    """
    header, start = _header(data)
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    words = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    words += b" " * (-len(words) % ALIGNMENT)
    return len(words).to_bytes(LENGTH, "little") + words, memoryview(data)[start:]


def _finite(value: Any) -> Any:
    """Returns the value with None for numbers that JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def digest(tensors: dict[str, Tensor], about: str) -> str:
    """Returns the SHA-256 of the tensors, with their names and shapes, and of the description."""
    found = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        t = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        found.update(t.view(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what `write` wrote: the tensors and their description."""
    data = path.read_bytes()
    try:
        tensors = from_bytes(data)
        metadata = _metadata(data)
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(
            f"{path.name} is not a model file of nits, or it is damaged "
            f"({str(error).splitlines()[0][:80]}); save the model again."
        ) from None
    if metadata.get("format") != "nits" or not metadata.get("version", "").isdigit():
        raise ValueError(
            f"{path.name} is a safetensors file, but not one of nits; pass one made by nits.save."
        )
    if int(metadata["version"]) > FORMAT:
        raise ValueError(
            f"{path.name} has format {metadata['version']}, but this version of nits reads up to "
            f"{FORMAT}; install a newer nits."
        )
    about = metadata.get("about", "")
    if metadata.get("sha256") != digest(tensors, about):
        raise ValueError(
            f"{path.name} is damaged: its checksum does not match; copy it again from its source."
        )
    return tensors, _description(path, about)


def _description(path: Path, about: str) -> dict[str, Any]:
    try:
        found = json.loads(about)
        if not isinstance(found, dict):
            raise TypeError(f"it is a {type(found).__name__}")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path.name} has no description of a model ({error}); save the model again."
        ) from None
    return found


def allowance(tensors: dict[str, Tensor]) -> Allowance:
    """Returns how large a model the tensors of a file may be for."""
    return Allowance(sum(tensor.numel() for tensor in tensors.values()))


def fill(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts the tensors of a file into a model, if they are finite numbers.

    Only what is infinite in the model as described, such as the end of a support, may be so.
    """
    own = model.state_dict()
    for name, tensor in tensors.items():
        fine = torch.isfinite(tensor)
        if name in own and own[name].shape == tensor.shape:
            fine |= own[name] == tensor
        if not bool(fine.all()):
            raise ValueError(f"its weights {name} are not all finite numbers")
    model.load_state_dict(tensors)


def _metadata(data: bytes) -> dict[str, str]:
    """Returns the metadata in the header."""
    found = _header(data)[0].get("__metadata__", {})
    if not isinstance(found, dict):
        raise ValueError("no description")
    return found


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Returns the header, eight bytes of length and then JSON, and where the tensors begin."""
    start = LENGTH + int.from_bytes(data[:LENGTH], "little")
    return json.loads(data[LENGTH:start]), start


def tuples(value: Any) -> Any:
    """Returns the value with tuples for lists: JSON has no tuples."""
    if isinstance(value, list):
        return tuple(tuples(item) for item in value)
    return (
        {name: tuples(item) for name, item in value.items()} if isinstance(value, dict) else value
    )
