"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder, renamed to `path` if the block raises nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    place = Path(name)
    try:
        yield place
        place.chmod(0o644)
        place.replace(path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def write(path: Path, data: bytes) -> None:
    """Writes bytes to a temporary file, flushes it to disk, then renames it to `path`."""
    with temporary(path) as place, place.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
