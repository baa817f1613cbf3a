"""Where the published files are: in `root`, or in the folder of the variable NITS_DATA."""

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


def _found(
    root: Path | None, parts: tuple[str, ...], kind: str, there: Callable[[Path], bool]
) -> Path:
    folder = data_root(root)
    path = folder.joinpath(*parts)
    if not there(path):
        raise FileNotFoundError(
            f"{folder} must hold {'/'.join(parts)}, but there is no such {kind}; "
            "docs/data.md says where to get it."
        )
    return path


def image_source(path: Path | None, name: str, wanted: str, origin: str) -> Path:
    """Returns `path`, or by default the folder `name` in NITS_DATA.

    wanted: The files that it must have, for the message if there is no such path.
    origin: Where they are published.
    """
    data = os.environ.get("NITS_DATA")
    if path is None and not data:
        raise lacking("path or the folder that NITS_DATA names", wanted, "neither is set", origin)
    place = (Path(data or "") / name if path is None else Path(path)).expanduser()
    if not place.exists():
        raise lacking(str(place), wanted, "there is no such path", origin)
    return place


def lacking(place: str, wanted: str, fault: str, origin: str) -> FileNotFoundError:
    """Returns the error for missing files of images: what they are, and where to get them."""
    return FileNotFoundError(
        f"{place} must hold {wanted}, but {fault}; get them from {origin}, "
        "then pass path= or set NITS_DATA."
    )
