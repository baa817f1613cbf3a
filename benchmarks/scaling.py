"""How the time to score and to sample grows with columns, rows, width and threads.

    python benchmarks/scaling.py [--rounds 5]
        → benchmarks/results/scaling.json

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
from timing import Program, alternately, seconds

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


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Returns p of the power law time = c·sizeᵖ, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measured(sweep: Sweep, rounds: int, threads: Sequence[int]) -> Record:
    """Times the cases in turn and fits a power law, for one number of threads after the other."""
    shapes = {(case.columns, case.hidden) for case in sweep.cases.values()}
    models = {shape: started_at_quantiles(Size(*shape, BLOCKS)) for shape in shapes}
    programs = {
        str(size): sweep.work(models[case.columns, case.hidden], case.rows)
        for size, case in sweep.cases.items()
    }
    lines, before = {}, torch.get_num_threads()
    for count in threads:
        torch.set_num_threads(count)
        with torch.no_grad(), memory.kept(), subnormal.flushed():
            spreads = list(seconds(alternately(programs, rounds)).values())
        power = exponent(list(sweep.cases), [spread["median"] for spread in spreads])
        lines[str(count)] = {"seconds": spreads, "exponent": power}
    torch.set_num_threads(before)
    return {
        "work": sweep.work.__name__,
        "against": sweep.against,
        "sizes": list(sweep.cases),
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
