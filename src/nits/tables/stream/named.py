"""What the user may name in place of a table: a folder, a pattern or an address of many files."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATTERN = re.compile(r"[*?\[]")
ADDRESS = re.compile(r"[a-z][a-z0-9+.\-]+://", re.IGNORECASE)
LOCAL = re.compile(r"(file|local)://", re.IGNORECASE)

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
IMAGES = (".png", ".jpg", ".jpeg")


def is_source(table: Any) -> bool:
    """Returns whether a table is one of many files: a folder, a pattern, an address, or Arrow's."""
    if type(table).__module__ in ("pyarrow._dataset", "pyarrow.dataset"):
        return True
    if not isinstance(table, str | Path) or str(table) == "-":
        return False
    text = str(table)
    if ADDRESS.match(text):
        return True
    path = Path(text).expanduser()
    return path.is_dir() or (PATTERN.search(text) is not None and not path.is_file())


def local_files(name: str) -> Iterator[Path]:
    """Yields the files of this machine that a path, a folder, a pattern or an address names."""
    text = LOCAL.sub("", name)
    if ADDRESS.match(text):
        return
    path = Path(text).expanduser()
    for one in [path] if path.exists() else map(Path, glob.glob(str(path), recursive=True)):
        yield from one.rglob("*") if one.is_dir() else [one]


def is_table(path: str) -> bool:
    """Returns whether a file is one of a table, by its name; hidden ones are not."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
    return name.endswith((*CSV, *PARQUET)) and not name.startswith((".", "_"))


def is_of_tables(folder: Path) -> bool:
    """Returns whether a folder holds tables, and no images, with which tables may be."""
    if any(path.suffix.lower() in IMAGES for path in folder.iterdir()):
        return False
    return any(is_table(str(path)) for path in folder.rglob("*"))
