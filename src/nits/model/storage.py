"""The layout of model files: tensors and a description of everything around them, in one safetensors file.

Reading executes nothing. A checksum over all of it is kept, so that a damaged file is never taken for a model.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from nits import atomic

FORMAT = 1
"""Version of the layout: a file of a later one is refused."""


def write(path: str | Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """Writes tensors and what is said of them."""
    about = json.dumps(_finite(description), sort_keys=True, allow_nan=False)
    metadata = {
        "format": "nits",
        "version": str(FORMAT),
        "about": about,
        "sha256": digest(tensors, about),
    }
    atomic.write(Path(path), to_bytes(tensors, metadata))


def _finite(value: Any) -> Any:
    """Returns the value with null for numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def digest(tensors: dict[str, Tensor], about: str) -> str:
    """Returns the SHA-256 of all names, shapes, numbers and words."""
    found = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        t = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        found.update(t.numpy().tobytes())
    return found.hexdigest()


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what `write` wrote: the tensors, and what is said of them."""
    data = path.read_bytes()
    try:
        tensors = from_bytes(data)
        metadata = _metadata(data)
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise ValueError(
            f"{path.name} is not a model file of nits, or it is damaged ({str(error).splitlines()[0][:80]}); "
            "save the model again."
        ) from None
    if metadata.get("format") != "nits" or not metadata.get("version", "").isdigit():
        raise ValueError(
            f"{path.name} is a safetensors file, but not one of nits; it holds no density."
        )
    if int(metadata["version"]) > FORMAT:
        raise ValueError(
            f"{path.name} has format {metadata['version']}, but this version of nits reads up to {FORMAT}; "
            "install a newer nits."
        )
    about = metadata.get("about", "")
    if metadata.get("sha256") != digest(tensors, about):
        raise ValueError(
            f"{path.name} is damaged: its checksum does not fit; copy it again from where it came."
        )
    return tensors, json.loads(about)


def _metadata(data: bytes) -> dict[str, str]:
    """Returns the words in the header: eight bytes of length, then JSON."""
    length = int.from_bytes(data[:8], "little")
    found = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    if not isinstance(found, dict):
        raise ValueError("no description")
    return found


def tuples(value: Any) -> Any:
    """JSON has no tuples: lists become tuples again."""
    if isinstance(value, list):
        return tuple(tuples(item) for item in value)
    return (
        {name: tuples(item) for name, item in value.items()} if isinstance(value, dict) else value
    )
