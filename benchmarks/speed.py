"""How fast NITS-MLP is beside the plain way and beside flows with as many weights, as ratios within one run.

    python benchmarks/speed.py [--rounds 7]     writes results/speed.json and docs/images/speed.png,
    .svg

Rows per second trained, scored and sampled, for 63 and for 6 columns; peak memory of training,
which is read from Linux's /proc; and the time that an import takes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import alternately, ratios, spread, write
from models import versions
from speed_programs import (
    MAKE,
    RIVALS,
    UNCOMPILED,
    Contender,
    Size,
    sampling,
    scoring,
    sizes,
    training_step,
)
from torch import Tensor

from nits.training import memory, subnormal

BATCH, SCORED, SAMPLED = 1024, 4096, 512
MEMORY_STEPS = 3

SIZES = (Size(63, 512, 4), Size(6, 256, 2))

IMPORTS = {
    "torch": "import torch",
    "nits": "import nits",
    "zuko": "import zuko",
    "nflows": "import nflows.flows, nflows.transforms, nflows.distributions",
}
"""What a program that trains a model imports; nflows itself imports nothing."""

WHAT = {
    "training": f"batch {BATCH}: zero_grad, log_prob, backward, clip_grad_norm_, fused AdamW",
    "training, tuned": "the same, but for all alike freed memory is kept and subnormal numbers are zero, as "
    "nits.fit has it",
    "scoring": f"log_prob of {SCORED} rows without gradients; the plain way takes 1024 at once",
    "sampling": f"{SAMPLED} rows without gradients; only nflows-rq-coupling needs one pass of the network by "
    "its design, the other rivals one per column and transformation",
}
SETTING = (
    "nits-mlp with compiled PNN kernels, the others as they are; standard normal rows; rivals with five "
    "transformations, 8 bins if they are splines, and the width that matches our number of weights; memory "
    "and subnormal numbers as torch has them, except where it says tuned"
)


def race(programs: dict[str, Callable[[], object]], rows: int, rounds: int) -> dict[str, Any]:
    """Returns the rows per second of each program, and how many times those of the others are ours."""
    times = alternately(programs, rounds)
    ours, *others = programs
    return {
        "rows_per_s": {name: spread([rows / t for t in values]) for name, values in times.items()},
        "ours_over": {name: ratios(times, name, ours) for name in others},
    }


def races(field: dict[str, Contender], x: Tensor, rounds: int) -> dict[str, dict[str, Any]]:
    """Trains on the first rows of x, scores all of them, and draws some; our model comes first in `field`."""
    batch, few = x[:BATCH], min(SAMPLED, len(x))
    training = {name: training_step(c, batch) for name, c in field.items()}
    drawing = {name: sampling(c, few) for name, c in field.items() if c.sample is not None}
    found = {
        "scoring": race({name: scoring(c, x) for name, c in field.items()}, len(x), rounds),
        "sampling": race(drawing, few, max(3, rounds // 2)),
        "training": race(training, len(batch), rounds),
    }
    with memory.kept(), subnormal.flushed():
        return found | {"training, tuned": race(training, len(batch), rounds)}


def rows_per_second(rounds: int) -> dict[str, Any]:
    """The three races for each number of columns."""
    found: dict[str, Any] = {name: {"what": what, "columns": {}} for name, what in WHAT.items()}
    for ours in SIZES:
        field = {name: MAKE[name](s) for name, s in sizes(ours).items() if name != UNCOMPILED}
        torch.manual_seed(ours.columns)
        for name, result in races(field, torch.randn(SCORED, ours.columns), rounds).items():
            found[name]["columns"][str(ours.columns)] = result
            print(json.dumps({f"{name}, {ours.columns} columns": result}, indent=2), flush=True)
    return found


def entries() -> dict[str, dict[str, Any]]:
    """Returns every contender's width, blocks and number of weights, for each number of columns."""
    return {
        str(ours.columns): {
            name: {"hidden": s.hidden, "blocks": s.blocks, "parameters": MAKE[name](s).parameters}
            for name, s in sizes(ours).items()
            if name != UNCOMPILED
        }
        for ours in SIZES
    }


def peak_mib(arguments: list[str]) -> float:
    """Returns the largest resident memory of a Python process that prints its /proc/self/status at its end.

    Not `ru_maxrss`, which in a child begins at what its parent has taken.
    """
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    found = re.search(r"VmHWM:\s+(\d+) kB", run.stdout)
    if run.returncode or found is None:
        raise RuntimeError(f"{' '.join(arguments)} did not end well: {run.stderr[-500:]}")
    return int(found[1]) / 1024


def status() -> str:
    """Returns what Linux knows of this process."""
    return Path("/proc/self/status").read_text(encoding="utf-8")


def train_and_print_status(name: str, size: Size, rows: int) -> None:
    """Takes three training steps of one contender in this process, which is to do nothing else."""
    torch.manual_seed(size.columns)
    with memory.kept(), subnormal.flushed():
        step = training_step(MAKE[name](size), torch.randn(rows, size.columns))
        for _ in range(MEMORY_STEPS):
            step()
    print(status())


def training_memory(every: tuple[Size, ...] = SIZES, rows: int = BATCH) -> dict[str, Any]:
    """Returns MiB above a process that has only imported torch."""
    bare = peak_mib(["-c", "import torch; print(open('/proc/self/status').read())"])
    columns: dict[str, Any] = {}
    for ours in every:
        mib = {}
        for name, size in sizes(ours).items():
            flags = ["--memory-of", name, "--size", *map(str, size), "--rows", str(rows)]
            mib[name] = round(peak_mib([__file__, *flags]) - bare, 1)
        columns[str(ours.columns)] = mib
    return {
        "what": f"MiB above a bare import of torch, at the peak of {MEMORY_STEPS} training steps in a fresh "
        f"process, batch {rows}",
        "bare_mib": round(bare, 1),
        "columns": columns,
    }


def import_time(rounds: int) -> dict[str, Any]:
    """Returns the seconds of fresh processes that import a library and end."""
    programs: dict[str, Callable[[], object]] = {
        name: partial(subprocess.run, [sys.executable, "-c", line], check=True)
        for name, line in IMPORTS.items()
    }
    times = alternately(programs, rounds)
    return {
        "what": "a fresh Python that imports and ends",
        "lines": IMPORTS,
        "seconds": {name: spread(values) for name, values in times.items()},
        "over_torch": {name: ratios(times, name, "torch") for name in programs if name != "torch"},
    }


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """Returns the options; all but --rounds are for the processes whose memory is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory-of", choices=MAKE, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=BATCH, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _draw() -> int:
    import speed_plot  # not above: matplotlib would count in the memory of training

    return speed_plot.main()


def main(argv: list[str] | None = None) -> int:
    """Runs the benchmarks, writes the results and draws them."""
    given = parsed(argv)
    if given.memory_of:
        train_and_print_status(given.memory_of, Size(*given.size), given.rows)
        return 0
    start = time.perf_counter()
    results: dict[str, Any] = {"rounds": given.rounds, "what": SETTING, "contenders": entries()}
    results["rivals"] = {
        package: number for name in RIVALS for package, number in versions(name).items()
    }
    results["import_time"] = import_time(given.rounds)
    results["training_memory"] = training_memory()
    print(json.dumps(results, indent=2), flush=True)
    results |= rows_per_second(given.rounds)
    results["wall_clock_seconds"] = round(time.perf_counter() - start, 1)
    print(write("speed", results))
    return _draw()


if __name__ == "__main__":
    sys.exit(main())
