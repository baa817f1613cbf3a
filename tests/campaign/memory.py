"""How much memory millions of rows and a thousand columns take, and whether it grows.

    PYTHONPATH=tests python -m campaign.memory [--rows 5000000] [--columns 1000]

Each command runs in a process of its own, whose memory is read ten times a second. The figures go
to benchmarks/results/campaign-memory.json and campaign-columns.json; the exit code is 1 if a peak
is too high or memory goes on growing after the first tenth of the output. Either number may be 0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas

from campaign import record
from mixed_table import mixed

COLUMNS = ["size", "count", "city", "price"]
MOST = 700.0
"""MB that a command may take."""

MOST_OF_COLUMNS = 1000.0
"""MB that a command may take with a thousand columns."""

GROWTH = 1.1
"""Memory after the first tenth of the output, over the most in it."""

WIDE_ROWS = 2000

MEGABYTE = 2**20


def main() -> int:
    """Measures commands, and writes the figures."""
    parser = argparse.ArgumentParser(prog="python -m campaign.memory")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=1000)
    args = parser.parse_args()
    good = not args.rows or many_rows(args.rows)
    return int(not ((not args.columns or many_columns(args.columns)) and good))


def many_rows(rows: int) -> bool:
    """Measures drawing and scoring; returns whether all is fine."""
    commands = {
        "sample to CSV": f"sample m.nits -n {rows} -o drawn.csv --seed 1 --quiet",
        "sample to Parquet": f"sample m.nits -n {rows} -o drawn.parquet --seed 1 --quiet",
        "score CSV": "score m.nits drawn.csv -o scores.csv --quiet",
        "score Parquet": "score m.nits drawn.parquet -o scores.parquet --quiet",
    }
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        mixed(300)[COLUMNS].to_csv(Path(folder) / "t.csv", index=False)
        _measured(folder, "fit t.csv -o m.nits --max-steps 20 --members 1 --quiet")
        for name, command in commands.items():
            found[name] = _measured(folder, command)
            print(name, found[name], flush=True)
    record.write_figures("campaign-memory", {"rows": rows, "commands": found})
    return all(fine(figures) for figures in found.values())


def many_columns(columns: int) -> bool:
    """Measures a lone network of many columns, nine of ten real numbers; returns whether so."""
    commands = {
        "fit": "fit wide.csv -o wide.nits --max-steps 20 --quiet",
        "score": "score wide.nits wide.csv -o scores.csv --quiet",
        "sample": "sample wide.nits -n 500 -o drawn.csv --seed 1 --quiet",
    }
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        wide(WIDE_ROWS, columns).to_csv(Path(folder) / "wide.csv", index=False)
        for name, command in commands.items():
            found[name] = _measured(folder, command)
            print(name, found[name], flush=True)
    figures = {"columns": columns, "rows": WIDE_ROWS, "commands": found}
    record.write_figures("campaign-columns", figures)
    return all(figures["peak_mb"] < MOST_OF_COLUMNS for figures in found.values())


def wide(rows: int, columns: int) -> pandas.DataFrame:
    """Returns columns that depend on twenty others, which are not in the table."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 20)) @ rng.normal(0, 0.3, (20, columns))
    x = (hidden + rng.normal(size=(rows, columns))).round(4)
    x[:, ::10] = x[:, ::10].round()
    return pandas.DataFrame(x, columns=[f"x{i}" for i in range(columns)])


def fine(figures: dict[str, float]) -> bool:
    """Returns whether a command took little memory, and no more as time went on."""
    return figures["peak_mb"] < MOST and figures["later_over_first_tenth"] < GROWTH


def _measured(folder: str, command: str) -> dict[str, float]:
    """Runs a command and returns its peak, and how the rest compares with the first tenth."""
    start, seen = time.monotonic(), list[tuple[int, float]]()
    process = subprocess.Popen([sys.executable, "-m", "nits", *command.split()], cwd=folder)
    peak = 0.0
    while process.poll() is None:
        now, most = _resident(process.pid)
        seen.append((_written(Path(folder)), now))
        peak = max(peak, most)
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError(f"nits {command} ended with {process.returncode}")
    tenth = max(size for size, _ in seen) / 10
    early = max(mb for size, mb in seen if size <= tenth)
    later = max((mb for size, mb in seen if size > tenth), default=early)
    return {
        "peak_mb": round(peak, 1),
        "first_tenth_mb": round(early, 1),
        "later_over_first_tenth": round(later / early, 3),
        "seconds": round(time.monotonic() - start, 1),
    }


def _written(folder: Path) -> int:
    """Returns the size of the output so far, which has a temporary name."""
    try:
        return max((part.stat().st_size for part in folder.glob(".*.part")), default=0)
    except OSError:  # it has just got its name
        return 0


def _resident(process: int) -> tuple[float, float]:
    """Returns the memory of a process and its peak, in MB; 0 if it has just ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = {line.split(":")[0]: line.split() for line in lines if line.startswith("Vm")}
    if "VmRSS" not in sizes:
        return 0.0, 0.0
    now, most = (float(sizes[name][1]) * 1024 / MEGABYTE for name in ("VmRSS", "VmHWM"))
    return now, most


if __name__ == "__main__":
    sys.exit(main())
