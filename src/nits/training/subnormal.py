"""Rounds numbers too small for full precision to zero while heavy work runs on a processor.

Below 10⁻³⁸ a float32 has fewer digits, and an operation on it takes a hundred times as long.
Gradients of far-off units are full of such numbers, in matrix products too. Rounding is a setting
of each thread, which a new thread takes over from the one that starts it: OpenMP's helper threads
are let go on the way in and out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from nits.kernels import openmp

PAUSE_SOFT = 1  # of OpenMP's omp_pause_resource_t: threads end and start again when they are needed


@contextmanager
def flushed() -> Iterator[None]:
    """Rounds subnormal numbers to zero in this thread and in the threads that torch starts from it."""
    if not torch.set_flush_denormal(True):
        yield
        return
    _let_threads_go()
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        _let_threads_go()


def _let_threads_go() -> None:
    library = _openmp()
    if library is not None:
        library.omp_pause_resource_all(PAUSE_SOFT)


@cache
def _openmp() -> Any:
    """Returns torch's OpenMP library, or None; other threads then stay as they are."""
    path = openmp.path()
    try:
        library = ctypes.CDLL(path) if path else None
        return library if hasattr(library, "omp_pause_resource_all") else None
    except OSError:
        return None
