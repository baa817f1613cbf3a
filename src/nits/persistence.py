"""`save` and `load`: which room reads a file is decided by what the file says it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from nits.model import storage


def load(path: str | Path) -> Any:
    """Reads a model that was saved; executes nothing."""
    path = Path(path)
    tensors, about = storage.read(path)
    try:
        return _restored(tensors, about)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise ValueError(
            f"{path.name} does not describe a model that this version can build: {error}"
        ) from None


def _restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Any:
    if about.get("kind") == "images":
        from nits.images import persistence as images

        return images.restored(tensors, about)
    from nits.tables import persistence as tables

    return tables.restored(tensors, about)
