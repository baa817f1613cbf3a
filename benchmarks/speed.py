"""How fast NITS-MLP is beside the plain way and flows with as many weights, as ratios of one run.

    python benchmarks/speed.py [--rounds 7]
        → benchmarks/results/speed.json

Rows per second trained, scored and sampled, for 63 and for 6 columns.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import models
import torch
from contenders import OUR_SIZES, RIVALS, Contender, field, make, sampling, scoring, training_step
from results import Record, write_figures
from timing import Programs, alternately, ratios, spread
from torch import Tensor

from nits.training import memory, subnormal

BATCH, SCORED, SAMPLED = 1024, 4096, 512

WHAT = {
    "training": f"batch {BATCH}: zero_grad, log_prob, backward, clip_grad_norm_, fused AdamW",
    "training, tuned": "the same, but for all alike freed memory is kept and subnormal numbers are "
    "zero, as nits.fit has it",
    "scoring": f"log_prob of {SCORED} rows without gradients; the plain way takes 1024 at once",
    "sampling": f"{SAMPLED} rows without gradients; only nflows-rq-coupling needs one pass of the "
    "network by its design, the other rivals one per column and transformation",
}
SETTING = (
    "nits-mlp with its kernels in C++, the others as they are; standard normal rows; rivals with "
    "five transformations, 8 bins if they are splines, and the width that matches our number of "
    "weights; memory and subnormal numbers as torch has them, except where it says tuned"
)


def race(programs: Programs, rows: int, rounds: int) -> Record:
    """Returns the rows per second of each program, and how many times the others' ours are."""
    times = alternately(programs, rounds)
    ours, *others = programs
    return {
        "rows_per_s": {name: spread([rows / t for t in values]) for name, values in times.items()},
        "ours_over": {name: ratios(times, name, ours) for name in others},
    }


def races(entered: dict[str, Contender], x: Tensor, rounds: int) -> dict[str, Record]:
    """Trains on the first rows of x, scores all, and draws some; ours comes first."""
    batch, few = x[:BATCH], min(SAMPLED, len(x))
    training = {name: training_step(c, batch) for name, c in entered.items()}
    drawing = {name: sampling(c.sample, few) for name, c in entered.items() if c.sample is not None}
    found = {
        "scoring": race({name: scoring(c, x) for name, c in entered.items()}, len(x), rounds),
        "sampling": race(drawing, few, max(3, rounds // 2)),
        "training": race(training, len(batch), rounds),
    }
    with memory.kept(), subnormal.flushed():
        return found | {"training, tuned": race(training, len(batch), rounds)}


def main(argv: list[str] | None = None) -> int:
    """Runs the races for each number of columns and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds, start = parser.parse_args(argv).rounds, time.perf_counter()
    found: Record = {"rounds": rounds, "what": SETTING, "contenders": {}}
    found["rivals"] = {key: v for name in RIVALS for key, v in models.versions(name).items()}
    found |= {name: {"what": what, "columns": {}} for name, what in WHAT.items()}
    for columns in OUR_SIZES:
        entered = {name: make(name, size) for name, size in field(columns).items()}
        found["contenders"][str(columns)] = {
            name: {"hidden": size.hidden, "blocks": size.blocks, "parameters": c.parameters}
            for (name, size), c in zip(field(columns).items(), entered.values(), strict=True)
        }
        torch.manual_seed(columns)
        for name, result in races(entered, torch.randn(SCORED, columns), rounds).items():
            found[name]["columns"][str(columns)] = result
            print(json.dumps({f"{name}, {columns} columns": result}, indent=2), flush=True)
    found["wall_clock_seconds"] = round(time.perf_counter() - start, 1)
    print(write_figures("speed", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
