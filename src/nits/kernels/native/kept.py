"""Built kernels in the cache: only what this user built is loaded, and only if it is whole.

A library's name has a digest of all that decides what is built, and the checksum of its contents.
The file that was checked is the one that is loaded, even if another takes its name meanwhile.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUILDING = "building-"
"""How the names of folders begin in which something is being built."""

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def folder(place: Path) -> Path:
    """Returns the folder of built kernels, if nobody but this user can put something there."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    about = place.lstat()
    if not stat.S_ISDIR(about.st_mode) or not _ours(about):
        raise ValueError(
            f"{place} must be a folder that only you can write to, but is not; remove it, "
            "or set NITS_CACHE to another"
        )
    return place


def opened(place: Path, name: str) -> ctypes.CDLL | None:
    """Returns the library of a name, if there is one that is whole; others are removed."""
    for path in place.glob(f"{name}-*.so"):
        handle = _handle(path)
        if handle is None:
            path.unlink(missing_ok=True)
            continue
        try:
            return ctypes.CDLL(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
    return None


def _handle(path: Path) -> int | None:
    """Returns a handle of a library that is ours and has the checksum that its name tells."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and _ours(about):
        with open(handle, "rb", closefd=False) as file:
            if path.stem.endswith(f"-{_checksum(file.read())}"):
                return handle
    os.close(handle)
    return None


def _ours(about: os.stat_result) -> bool:
    """Returns whether a file is this user's, and nobody else may change it."""
    return about.st_uid == os.getuid() and not about.st_mode & WRITABLE_BY_OTHERS


def keep(library: Path, place: Path, name: str) -> None:
    """Moves a library that was built to where it is kept."""
    library.chmod(0o700)
    library.replace(place / f"{name}-{_checksum(library.read_bytes())}.so")


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Lets one process build at a time, and removes what a killed one has left."""
    import fcntl

    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left in place.glob(f"{BUILDING}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)
