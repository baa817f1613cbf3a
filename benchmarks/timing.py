"""Programs timed in turn within one run, and the spread of their seconds and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from nits import kernels
from nits.training import memory, subnormal

Program = Callable[[], object]
Programs = Mapping[str, Program]
Times = dict[str, list[float]]
Spread = dict[str, float]


def alternately(programs: Programs, rounds: int, *, warm_up: bool = True) -> Times:
    """Runs the programs in turn, `rounds` times after one warm-up, and returns their seconds."""
    times: Times = {name: [] for name in programs}
    for counted in (*(False,) * warm_up, *(True,) * rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            if counted:
                times[name].append(time.perf_counter() - start)
    return times


@contextmanager
def as_fit() -> Iterator[None]:
    """Has steps of a training run that a block of code takes be those that `nits.fit` takes."""
    with memory.kept(), subnormal.flushed(), kernels.using(training=True):
        yield


def spread(values: list[float]) -> Spread:
    """Returns the median and the quartiles, which are the value itself if there is one."""
    some = values * 2 if len(values) == 1 else values
    low, middle, high = statistics.quantiles(some, n=4, method="inclusive")
    return {"median": middle, "quartile_low": low, "quartile_high": high}


def seconds(times: Times) -> dict[str, Spread]:
    """Returns the spread of each program's seconds."""
    return {name: spread(values) for name, values in times.items()}


def ratios(times: Times, over: str, under: str, factor: float = 1.0) -> Spread:
    """Returns the spread of time over time, taken within each round."""
    return spread([factor * a / b for a, b in zip(times[over], times[under], strict=True)])
