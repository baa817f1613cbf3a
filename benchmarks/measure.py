"""What the benchmarks share: alternate timing, spreads, and result files that say how they came about."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nits

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

Times = dict[str, list[float]]


def alternately(programs: dict[str, Callable[[], object]], rounds: int) -> Times:
    """Runs the programs in turn, `rounds` times after one warm-up, and returns their seconds."""
    times: Times = {name: [] for name in programs}
    for counted in (False, *(True,) * rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            if counted:
                times[name].append(time.perf_counter() - start)
    return times


def spread(values: list[float]) -> dict[str, float]:
    """Returns the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "quartile_low": low, "quartile_high": high}


def ratios(times: Times, over: str, under: str, factor: float = 1.0) -> dict[str, float]:
    """Returns the spread of time over time, taken within each round."""
    return spread([factor * a / b for a, b in zip(times[over], times[under], strict=True)])


def circumstances() -> dict[str, Any]:
    """Returns what a result depends on besides the code: command, commit, versions, hardware, date."""
    run = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "command": " ".join(["python", *map(_portable, sys.argv)]),
        "commit": run.stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0],
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "nits": nits.__version__,
        },
    }


def write(name: str, results: dict[str, Any]) -> Path:
    """Writes results with their circumstances to benchmarks/results/NAME.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    temporary = path.with_suffix(".part")
    temporary.write_text(
        json.dumps({**circumstances(), "results": results}, indent=2) + "\n", encoding="utf-8"
    )
    temporary.replace(path)
    return path


def _portable(argument: str) -> str:
    """Returns an argument without what only this machine has: of a path outside the project, its name."""
    path = Path(argument)
    if not path.exists():
        return argument
    place = path.resolve()
    return str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else place.name


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    names = [
        line.partition(":")[2].strip()
        for line in info.read_text().splitlines()
        if "model name" in line
    ]
    return names[0] if names else platform.processor()
