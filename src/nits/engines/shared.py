"""The private folder that the processes of a run share; those that killed runs left are removed.

Who has a folder holds a lock on it, so that one without a lock is known to be nobody's any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "nits-run-"


@contextmanager
def folder() -> Iterator[Path]:
    """Yields a new folder that only this user can read, and removes it at the end."""
    _remove_left()
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    handle = os.open(place, os.O_RDONLY) if os.name == "posix" else None
    try:
        if handle is not None:
            _lock(handle)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _remove_left() -> None:
    """Removes folders of this user that nobody holds."""
    if os.name != "posix":
        return
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                if os.fstat(handle).st_uid == os.getuid() and _lock(handle):
                    shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Locks a folder, and returns whether nobody else has it."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
