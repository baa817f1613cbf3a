"""How the time to score and to sample grows with columns, rows, width and threads.

    python benchmarks/scaling.py [--rounds 5]   writes results/scaling.json and
    docs/images/scaling.png, .svg

Every line is a power law fitted by least squares to the medians of sizes that are timed in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import speed_plot
import torch
from measure import alternately, spread, write
from mlp_speed import started_at_quantiles

from nits import NITS
from nits.training import memory, subnormal

NOISE = 0.005
BLOCKS = 2
THREADS = (1, 2)


class Case(NamedTuple):
    """A model's size and the number of rows it is given."""

    columns: int
    hidden: int
    rows: int


class Sweep(NamedTuple):
    """What is done, what it is timed against, and the cases in ascending order of that."""

    work: Callable[[NITS, int], Callable[[], object]]
    against: str
    sizes: tuple[int, ...]
    cases: tuple[Case, ...]


def scoring(model: NITS, rows: int) -> Callable[[], object]:
    """Returns the scoring of standard normal rows."""
    x = torch.randn(rows, model.columns, generator=torch.Generator().manual_seed(0))
    return lambda: model.log_prob(x)


def sampling(model: NITS, rows: int) -> Callable[[], object]:
    """Returns the drawing of rows, always from the same uniform numbers."""
    u = torch.rand(rows, model.columns, generator=torch.Generator().manual_seed(0))
    return lambda: model.from_uniform(u)


COLUMNS = (8, 16, 32, 64, 128, 256)
ROWS = tuple(2**k for k in range(10, 18))
WIDTHS = (128, 256, 512, 1024)

SWEEPS = {
    "scoring_columns": Sweep(
        scoring, "columns D", COLUMNS, tuple(Case(d, 512, 2048) for d in COLUMNS)
    ),
    "scoring_rows": Sweep(scoring, "rows N", ROWS, tuple(Case(16, 512, n) for n in ROWS)),
    "scoring_width": Sweep(
        scoring, "hidden width", WIDTHS, tuple(Case(16, h, 2048) for h in WIDTHS)
    ),
    "sampling_columns": Sweep(
        sampling, "columns D", COLUMNS, tuple(Case(d, 512, 2048) for d in COLUMNS)
    ),
}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Returns p of the power law seconds = c·sizeᵖ with the least squared error of the logarithm."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def with_threads(threads: int, program: Callable[[], object]) -> Callable[[], object]:
    """Returns the program on so many threads; the compiled kernels of each number are kept."""

    def run() -> object:
        torch.set_num_threads(threads)
        return program()

    return run


def programs(
    sweep: Sweep, threads: Sequence[int], *, compiled: bool
) -> dict[str, Callable[[], object]]:
    """Returns one program for each number of threads and each case, named by both."""
    models: dict[tuple[int, int], NITS] = {}
    found: dict[str, Callable[[], object]] = {}
    for size, case in zip(sweep.sizes, sweep.cases, strict=True):
        shape = case.columns, case.hidden
        if shape not in models:
            models[shape] = started_at_quantiles(*shape, NOISE, BLOCKS)[0]
            models[shape].compiled = models[shape].native = compiled
        for count in threads:
            found[f"{count} {size}"] = with_threads(count, sweep.work(models[shape], case.rows))
    return {name: found[name] for name in sorted(found, key=lambda name: name.split()[0])}


def measured(
    sweep: Sweep, rounds: int, threads: Sequence[int], *, compiled: bool = True
) -> dict[str, Any]:
    """Times the cases in turn and fits a power law for each number of threads."""
    before = torch.get_num_threads()
    try:
        with torch.no_grad(), memory.kept(), subnormal.flushed():
            times = alternately(programs(sweep, threads, compiled=compiled), rounds)
    finally:
        torch.set_num_threads(before)
    lines = {}
    for count in threads:
        seconds = [spread(times[f"{count} {size}"]) for size in sweep.sizes]
        medians = [s["median"] for s in seconds]
        lines[str(count)] = {"seconds": seconds, "exponent": exponent(sweep.sizes, medians)}
    return {
        "work": sweep.work.__name__,
        "against": sweep.against,
        "sizes": list(sweep.sizes),
        "cases": [case._asdict() for case in sweep.cases],
        "threads": lines,
    }


def main(argv: list[str] | None = None) -> int:
    """Times every sweep, writes the results and draws them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args(argv).rounds
    start = time.perf_counter()
    results: dict[str, Any] = {
        "what": f"{BLOCKS} residual blocks, no gradients, kernels in C++, started at the quantiles of "
        "standard normal rows, freed memory kept and subnormal numbers rounded to zero",
        "rounds": rounds,
        "sweeps": {},
    }
    for name, sweep in SWEEPS.items():
        results["sweeps"][name] = measured(sweep, rounds, THREADS)
        print(json.dumps({name: results["sweeps"][name]}, indent=2), flush=True)
    results["wall_clock_seconds"] = round(time.perf_counter() - start, 1)
    print(write("scaling", results))
    return speed_plot.main()


if __name__ == "__main__":
    sys.exit(main())
