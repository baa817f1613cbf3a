"""Processes that wait for work: loky's, which need no guard in the script that starts them."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import Lock
from typing import Any, NamedTuple

import torch

from nits import kernels

IDLE_SECONDS = 60.0
"""How long processes wait for another run: to start one costs seconds, to keep one costs memory."""

ONE_CORE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a process that has one core."""

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)

FAILURES = (ImportError, OSError, BrokenProcessPool)
"""What `submitted` raises if there can be no processes, and a future if its process has died."""

_pools: dict[int, Executor] = {}
_lock = Lock()


class Settings(NamedTuple):
    """What holds for the numbers of this process, and shall hold in others."""

    dtype: torch.dtype
    precision: str
    policy: kernels.Policy

    @classmethod
    def current(cls) -> Settings:
        """Returns those of this process."""
        precision = torch.get_float32_matmul_precision()
        return cls(torch.get_default_dtype(), precision, kernels.current())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Sets them in a process of a pool, which has one thread."""
        torch.set_num_threads(1)
        torch.set_default_dtype(self.dtype)
        torch.set_float32_matmul_precision(self.precision)
        with kernels.holding(self.policy):
            yield


def submitted(
    function: Callable[..., Any], arguments: list[tuple[Any, ...]], workers: int
) -> list[Future[Any]]:
    """Begins to call the function with each of the arguments, in processes that last."""
    with _lock:
        pool = _pools.get(workers) or _new(workers)
        try:
            with _without_interrupts():
                found = [pool.submit(function, *some) for some in arguments]
        except FAILURES:
            _pools.pop(workers, None)
            raise
        _pools[workers] = pool
        return found


def forget(workers: int) -> None:
    """Has the next run start new processes, because these have died."""
    with _lock:
        _pools.pop(workers, None)


@contextmanager
def restarts_unnoticed() -> Iterator[None]:
    """Keeps loky from warning when it replaces a process that has grown large."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        yield


def _new(workers: int) -> Executor:
    from joblib.externals.loky import ProcessPoolExecutor

    pool: Executor = ProcessPoolExecutor(
        workers, timeout=IDLE_SECONDS, initializer=_ignore_interrupts, env=ONE_CORE
    )
    return pool


def _ignore_interrupts() -> None:
    """Leaves Ctrl-C and SIGTERM, which often come to all processes, to the first of them.

    If that one ends, its processes end themselves.
    """
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Blocks interrupts, also in the processes that start meanwhile, before they ignore them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock it, if it had to start
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
