"""Splits that were prepared once, kept as .npy files and memory-mapped from then on.

A split is a folder, `<key>/{train,validation,test}.npy` and `columns.json`. It is written under a
temporary name and renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nits.datasets.split import Split
from nits.places import cache_root

PARTS = ("train", "validation", "test")


def cached(key: str, make: Callable[[], Split], cache: Path | None = None) -> Split:
    """Returns the split kept under `key`, after making and keeping it if there is none.

    key: Name and version of the protocol, with whatever else decides the rows.
    """
    folder = cache_root(cache) / key
    if not folder.is_dir():
        write(make(), folder)
    return read(folder)


def write(split: Split, folder: Path) -> None:
    """Keeps a split, unless another process has kept it in the meantime."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            part = Path(temporary) / "split"
            part.mkdir()
            _fill(split, part)
            _rename(part, folder)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(
            f"the cache must be a folder that can be written, but {folder.parent} cannot "
            f"({reason}); set NITS_CACHE to one that can."
        ) from None


def _fill(split: Split, part: Path) -> None:
    for name in PARTS:
        with (part / f"{name}.npy").open("wb") as file:
            np.save(file, getattr(split, name))
            file.flush()
            os.fsync(file.fileno())
    record = {"name": split.name, "columns": split.columns}
    (part / "columns.json").write_text(json.dumps(record) + "\n", encoding="utf-8")


def _rename(part: Path, folder: Path) -> None:
    try:
        part.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def read(folder: Path) -> Split:
    """Returns a kept split, its rows memory-mapped."""
    try:
        record = json.loads((folder / "columns.json").read_text(encoding="utf-8"))
        train, validation, test = (np.load(folder / f"{part}.npy", mmap_mode="r") for part in PARTS)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(
            f"{folder} must hold a whole split, but does not ({error}); "
            "delete that folder, and the split is made again."
        ) from None
    return Split(record["name"], train, validation, test, tuple(record["columns"]))
