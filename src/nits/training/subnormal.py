"""Rounds subnormal numbers to zero while training runs on a CPU.

A float32 below 10⁻³⁸ is subnormal: it has fewer digits, and an operation on it takes a hundred
times as long. Gradients of units far from the data are full of such numbers. Rounding is a setting
of each thread, which a new thread inherits from the one that starts it, so OpenMP's threads are
ended on the way in and out, and start again with the new setting.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from nits.kernels import openmp

SUBNORMAL = 1e-40

PAUSE_SOFT = 1  # OpenMP's omp_pause_soft: threads end, and start again when they are needed


@contextmanager
def flushed() -> Iterator[None]:
    """Rounds subnormal numbers to zero, in this thread and in those that torch starts from it.

    Other threads keep their setting, and this one has at the end what it had before.
    """
    if _rounds() or not torch.set_flush_denormal(True):
        yield
        return
    _end_threads()
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        _end_threads()


def _rounds() -> bool:
    """Returns whether this thread rounds subnormal numbers already."""
    return float(torch.tensor(SUBNORMAL) * 1.0) == 0


def _end_threads() -> None:
    library = _openmp()
    if library is not None:
        library.omp_pause_resource_all(PAUSE_SOFT)


@cache
def _openmp() -> Any:
    """Returns torch's OpenMP library, or None; the setting of other threads then stays."""
    path = openmp.path()
    try:
        library = ctypes.CDLL(path) if path else None
        return library if hasattr(library, "omp_pause_resource_all") else None
    except OSError:
        return None
