"""Where the published files lie: under `root`, or else under the folder that NITS_DATA names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def data_root(root: Path | None = None) -> Path:
    """Returns the folder that holds the data."""
    if root is None and not os.environ.get("NITS_DATA"):
        raise FileNotFoundError(
            "the data must be in root or in the folder NITS_DATA names, but neither is set; "
            "pass root= or set NITS_DATA."
        )
    folder = Path(os.environ["NITS_DATA"] if root is None else root).expanduser()
    if not folder.is_dir():
        given = "NITS_DATA" if root is None else "root"
        raise FileNotFoundError(
            f"{given} must name the data folder, but there is no folder {folder}; correct the path."
        )
    return folder


def data_file(root: Path | None, *parts: str) -> Path:
    """Returns the path of a published file."""
    return _found(root, parts, "file", Path.is_file)


def data_folder(root: Path | None, *parts: str) -> Path:
    """Returns the path of a published folder."""
    return _found(root, parts, "folder", Path.is_dir)


def _found(root: Path | None, parts: tuple[str, ...], kind: str, there: Callable[[Path], bool]) -> Path:
    folder = data_root(root)
    path = folder.joinpath(*parts)
    if not there(path):
        raise FileNotFoundError(
            f"{folder} must hold {'/'.join(parts)}, but there is no such {kind}; "
            "docs/data.md says where to get it."
        )
    return path
