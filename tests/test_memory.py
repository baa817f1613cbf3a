"""Freed memory stays in the process inside `kept`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nits.training import memory

PROGRAM = """
import resource, torch
from nits.training import memory

def faults():
    # pages brought in while 64 MB, more than the C library keeps by itself, come and go ten times
    for _ in range(4):  # until the heap has found its shape
        torch.empty(2**24).fill_(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(2**24).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

outside = faults()
with memory.kept():
    # A small block in between can force new pages now and then, but not each time.
    inside = min(faults() for _ in range(5))
print(outside, inside)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a matter of glibc")
def test_no_page_is_brought_in_twice() -> None:
    """In a process of its own: what others have left on the heap would count too."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    outside, inside = map(int, done.stdout.split())
    assert inside < outside / 3


def test_an_error_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), memory.kept():
        _ = 1 / 0


class Library:
    """Counts what is asked of the C library."""

    def __init__(self) -> None:
        self.settings: dict[int, int] = {}
        self.trims = 0

    def mallopt(self, name: int, value: int) -> None:
        self.settings[name] = value

    def malloc_trim(self, left: int) -> None:
        self.trims += 1


def test_large_blocks_are_returned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(memory, "_glibc", lambda: library)
    with memory.returned():
        assert library.settings == {memory.MMAP_THRESHOLD: memory.LARGE}
    assert library.settings == {memory.MMAP_THRESHOLD: memory.LARGEST}


def test_the_last_of_two_threads_returns_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(memory, "_glibc", lambda: library)
    first, second = memory.kept(), memory.kept()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # not nested: threads end in any order
    assert library.settings[memory.MMAP_MAX] == 0
    assert library.trims == 1  # before the first
    memory.give_back()  # which the second keeps from it
    assert library.trims == 1
    second.__exit__(None, None, None)
    assert library.settings == memory.DEFAULTS
    assert library.trims == 2
    memory.give_back()
    assert library.trims == 3
