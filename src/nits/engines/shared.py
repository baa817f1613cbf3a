"""Folders that are removed at the end of a run; those that killed runs left, by the next run.

Who has a folder holds a lock on it, so that one without a lock is known to be nobody's any more.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nits import atomic

PREFIX = "nits-run-"


@contextmanager
def folder(prefix: str = PREFIX, suffix: str = "", within: Path | None = None) -> Iterator[Path]:
    """Yields a new folder that only this user can read, and removes it at the end.

    prefix, suffix: Of its name, by which the next run finds it.
    within: Where it is made; by default where temporary files are.
    """
    within = Path(tempfile.gettempdir()) if within is None else within
    _remove_left(prefix, suffix, within)
    place, handle = _made(prefix, suffix, within)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _made(prefix: str, suffix: str, within: Path) -> tuple[Path, int | None]:
    """Makes a folder, and returns a handle that locks it until it is closed."""
    while True:
        with atomic.naming(within):
            place = Path(tempfile.mkdtemp(suffix, prefix, within))
        if os.name != "posix":
            return place, None
        with suppress(FileNotFoundError):
            handle = os.open(place, os.O_RDONLY)
            _lock(handle, wait=True)
            if place.exists():  # another run might have taken it for one that was left
                return place, handle
            os.close(handle)


def _remove_left(prefix: str, suffix: str, within: Path) -> None:
    """Removes folders of this user that nobody holds."""
    if os.name != "posix":
        return
    for place in within.glob(f"{glob.escape(prefix)}*{glob.escape(suffix)}"):
        with suppress(OSError):
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                if os.fstat(handle).st_uid == os.getuid() and _lock(handle, wait=False):
                    shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Locks a folder, and returns whether that was possible: where locks work, nobody has it."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
