"""`nits.save` and `nits.load`: what a file holds decides which sub-package reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from nits.model import storage

FAILURES = (
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    ArithmeticError,
)
"""What a malformed description may lead to."""


def save(model: Any, path: str | Path) -> None:
    """Writes a density or a fitted estimator to one file."""
    if not hasattr(model, "save"):
        raise TypeError(
            f"save takes a density or a fitted estimator of nits, but got a {type(model).__name__}."
        )
    model.save(path)


def load(path: str | Path) -> Any:
    """Reads a model that was saved; executes nothing.

    >>> import nits, tempfile, pathlib
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "model.nits"
    >>> nits.save(nits.NITS.independent(2), place)
    >>> nits.load(place).columns
    2
    """
    path = Path(path)
    tensors, about = storage.read(path)
    try:
        return _restored(tensors, about)
    except FAILURES as error:
        missing = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        reason = " ".join(missing.split())[:200]
        raise ValueError(
            f"{path.name} does not describe a model that this version can build: {reason}"
        ) from None


def _restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Any:
    if about.get("kind") == "density":
        from nits.model import persistence as densities

        return densities.restored(tensors, about)
    if about.get("kind") == "images":
        from nits.images import persistence as images

        return images.restored(tensors, about)
    if about.get("kind") in ("regressor", "classifier"):
        from nits.tables import supervised_files

        return supervised_files.restored(tensors, about)
    from nits.tables import persistence as tables

    return tables.restored(tensors, about)
