"""How the time to score and to sample grows with columns, rows, width and threads.

    python benchmarks/scaling.py [--rounds 5]
        → benchmarks/results/scaling.json, which plots.py draws

Every line is a power law fitted by least squares to the medians of sizes that are timed in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from contenders import Size, started_at_quantiles
from results import Record, write_figures
from timing import Program, alternately, spread

from nits import NITS
from nits.training import memory, subnormal

Work = Callable[[NITS, int], Program]

BLOCKS = 2
THREADS = (1, 2)
WHAT = (
    f"{BLOCKS} residual blocks, no gradients, kernels in C++, started at the quantiles of standard "
    "normal rows, freed memory kept and subnormal numbers rounded to zero"
)


class Case(NamedTuple):
    """A model's size and the number of rows it is given."""

    columns: int = 16
    hidden: int = 512
    rows: int = 2048


class Sweep(NamedTuple):
    """What is done, what it is timed against, and the cases by ascending size."""

    work: Work
    against: str
    cases: dict[int, Case]


def scoring(model: NITS, rows: int) -> Program:
    """Returns the scoring of standard normal rows."""
    x = torch.randn(rows, model.columns, generator=torch.Generator().manual_seed(0))
    return lambda: model.log_prob(x)


def sampling(model: NITS, rows: int) -> Program:
    """Returns the drawing of rows, always from the same uniform numbers."""
    u = torch.rand(rows, model.columns, generator=torch.Generator().manual_seed(0))
    return lambda: model.from_uniform(u)


BY_COLUMNS = {d: Case(columns=d) for d in (8, 16, 32, 64, 128, 256)}
BY_ROWS = {2**k: Case(rows=2**k) for k in range(10, 18)}
BY_WIDTH = {h: Case(hidden=h) for h in (128, 256, 512, 1024)}
SWEEPS = {
    "scoring_columns": Sweep(scoring, "columns D", BY_COLUMNS),
    "scoring_rows": Sweep(scoring, "rows N", BY_ROWS),
    "scoring_width": Sweep(scoring, "hidden width", BY_WIDTH),
    "sampling_columns": Sweep(sampling, "columns D", BY_COLUMNS),
}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Returns p of the power law seconds = c·sizeᵖ, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def with_threads(threads: int, program: Program) -> Program:
    """Returns the program on that many threads."""

    def run() -> object:
        torch.set_num_threads(threads)
        return program()

    return run


def measured(sweep: Sweep, rounds: int, threads: Sequence[int]) -> Record:
    """Times the cases in turn and fits a power law for each number of threads."""
    shapes = {(case.columns, case.hidden) for case in sweep.cases.values()}
    models = {shape: started_at_quantiles(Size(*shape, BLOCKS)) for shape in shapes}
    work = {
        size: sweep.work(models[case.columns, case.hidden], case.rows)
        for size, case in sweep.cases.items()
    }
    programs = {f"{n} {size}": with_threads(n, work[size]) for n in threads for size in work}
    before = torch.get_num_threads()
    try:
        with torch.no_grad(), memory.kept(), subnormal.flushed():
            times = alternately(programs, rounds)
    finally:
        torch.set_num_threads(before)
    lines = {}
    for n in threads:
        seconds = [spread(times[f"{n} {size}"]) for size in work]
        power = exponent(list(work), [s["median"] for s in seconds])
        lines[str(n)] = {"seconds": seconds, "exponent": power}
    return {
        "work": sweep.work.__name__,
        "against": sweep.against,
        "sizes": list(work),
        "cases": [case._asdict() for case in sweep.cases.values()],
        "threads": lines,
    }


def main(argv: list[str] | None = None) -> int:
    """Times every sweep and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args(argv).rounds
    start = time.perf_counter()
    sweeps = {}
    for name, sweep in SWEEPS.items():
        sweeps[name] = measured(sweep, rounds, THREADS)
        print(json.dumps({name: sweeps[name]}, indent=2), flush=True)
    wall = round(time.perf_counter() - start, 1)
    found = {"what": WHAT, "rounds": rounds, "sweeps": sweeps, "wall_clock_seconds": wall}
    print(write_figures("scaling", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
