"""Keeps freed memory in the process while the same large tensors come and go, and else does not.

glibc returns large freed blocks to the operating system, which zeroes every page that it hands out
again, one page fault at a time. In a training loop on a CPU that can take half as long as the
matrix products. But what is a large block grows with those that it has seen, up to 32 MB: smaller
ones then stay in the process in pieces, where large tensors come and go that are not alike.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # constants of malloc.h
LARGE, LARGEST = 2**20, 2**25
DEFAULTS = {TRIM_THRESHOLD: 128 * 1024, MMAP_MAX: 65536}


class _Blocks:
    """How many blocks of code keep memory now, in all threads: the setting is the process's."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def enter(self, c: Any) -> None:
        """Counts a block; the first one has freed memory kept."""
        with self.lock:
            self.count += 1
            if self.count == 1:
                c.malloc_trim(0)  # what was freed before is in pieces of other sizes
                c.mallopt(MMAP_MAX, 0)
                c.mallopt(TRIM_THRESHOLD, 2**31 - 1)

    def leave(self, c: Any) -> None:
        """Ends a block; with the last one freed memory is returned."""
        with self.lock:
            self.count -= 1
            if self.count == 0:
                for name, value in DEFAULTS.items():
                    c.mallopt(name, value)
                c.malloc_trim(0)

    def give_back(self, c: Any) -> None:
        """Returns freed memory, unless a block of another thread keeps it."""
        with self.lock:
            if self.count == 0:
                c.malloc_trim(0)


_blocks = _Blocks()


@contextmanager
def kept() -> Iterator[None]:
    """Keeps freed memory until the end of the block, then returns it; only glibc can do this.

    Where blocks of several threads overlap, memory is kept until the last of them ends.
    """
    c = _glibc()
    if c is None:
        yield
        return
    _blocks.enter(c)
    try:
        yield
    finally:
        _blocks.leave(c)


@contextmanager
def returned() -> Iterator[None]:
    """Returns blocks of a megabyte or more as soon as they are freed, until the end of the block.

    A block that keeps memory in another thread has its way.
    """
    c = _glibc()
    if c is not None:
        c.mallopt(MMAP_THRESHOLD, LARGE)
    try:
        yield
    finally:
        if c is not None:
            c.mallopt(MMAP_THRESHOLD, LARGEST)


def give_back() -> None:
    """Returns memory that was freed since to the operating system, unless a block keeps it."""
    if (c := _glibc()) is not None:
        _blocks.give_back(c)


@cache
def _glibc() -> Any:
    if sys.platform != "linux":
        return None
    try:
        c = ctypes.CDLL("libc.so.6")
        return c if hasattr(c, "malloc_trim") and hasattr(c, "mallopt") else None
    except OSError:
        return None
