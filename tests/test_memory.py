"""Freed memory stays in the process inside `kept`, and goes back after it."""

from __future__ import annotations

import resource
import sys

import pytest
import torch

from nits import memory

FLOATS = 2**24  # 64 MB, more than the C library keeps by itself


def faults() -> int:
    """Returns how many pages were brought in while 64 MB came and went ten times."""
    for _ in range(4):  # until the heap has found its shape
        torch.empty(FLOATS).fill_(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(FLOATS).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="a matter of glibc")
def test_no_page_is_brought_in_twice() -> None:
    outside = faults()
    with memory.kept():
        # A small block in between can force new pages now and then, but not each time.
        inside = min(faults() for _ in range(5))
    assert inside < outside / 3
    assert faults() > 3 * inside


def test_an_error_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), memory.kept():
        _ = 1 / 0
