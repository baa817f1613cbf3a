"""Files that are written whole or not at all.

A file is written under a temporary name beside its own, `.NAME.….part`, and renamed. Who writes it
holds a lock on it; one without a lock was left by a process that was killed, and the next who
writes to NAME removes it. Devices and pipes are written to directly, and a link stays a link.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ENDING = ".part"
STREAMS = ("/dev", "/proc")
"""Folders whose files are no files."""


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Yields a path in the same folder, renamed to `path` if the block raises nothing.

    The file honours the umask, or has the permissions of the one that it replaces.
    """
    if is_stream(path):
        yield path
        return
    path = checked(Path(os.path.realpath(path)))
    remove_stale(path)
    handle, place = _created(path)
    try:
        yield place
        with naming(path):
            os.fsync(handle)
            place.replace(path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Has errors of a block of code that writes a file say which, in one sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).rstrip(".")
        found = type(error)(f"{path} cannot be written: {reason}.")
        found.strerror = reason
        raise found from None


def write(path: Path, *parts: bytes | memoryview) -> None:
    """Writes bytes to a temporary file, flushes it to disk, then renames it to `path`."""
    with temporary(path) as place, naming(path), place.open("wb") as file:
        for part in parts:
            file.write(part)


def try_out(path: Path) -> None:
    """Raises an OSError if a file could not be written, by creating it under a temporary name."""
    if not is_stream(path):
        path = checked(Path(os.path.realpath(path)))
        remove_stale(path)
        handle, place = _created(path)
        os.close(handle)
        place.unlink()


def is_stream(path: Path) -> bool:
    """Returns whether a path is a device, a pipe or a socket, which cannot be replaced."""
    folder = os.path.realpath(path.parent)
    if any(folder == root or folder.startswith(f"{root}/") for root in STREAMS):
        return path.exists() and "shm" not in Path(folder).parts
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def checked(path: Path) -> Path:
    """Returns the path of a file that may be written, or raises one sentence."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a file to write, but is a folder; name another.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is read-only; name another file, or allow writing.")
    return path


def remove_stale(path: Path) -> None:
    """Removes temporary files of `path` that nobody writes any more."""
    for place in path.parent.glob(f".{_escaped(path.name)}.*{ENDING}"):
        with suppress(OSError):
            handle = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(handle, wait=False):
                    place.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _created(path: Path) -> tuple[int, Path]:
    """Creates a temporary file, and returns a handle that locks it until it is closed."""
    while True:
        place = path.parent / f".{path.name}.{secrets.token_hex(4)}{ENDING}"
        try:
            with naming(path):
                handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        _lock(handle, wait=True)
        if place.exists():  # another might have taken it for stale before it was locked
            with suppress(OSError):
                os.chmod(place, stat.S_IMODE(path.stat().st_mode))
            return handle, place
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Locks a file, and returns whether that was possible.

    Where locks do not work, as on Windows, nothing is taken for stale.
    """
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
