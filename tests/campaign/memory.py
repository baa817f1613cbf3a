"""How much memory scoring and drawing millions of rows takes, and whether it grows.

    PYTHONPATH=tests python -m campaign.memory [--rows 5000000]

Each command runs in a process of its own, whose memory is read ten times a second. The figures go
to benchmarks/results/campaign-memory.json; the exit code is 1 if a peak is too high or memory goes
on growing after the first tenth of the output.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from campaign import record
from mixed_table import mixed

COLUMNS = ["size", "count", "city", "price"]
MOST = 700.0
"""MB that a command may take."""

GROWTH = 1.1
"""Memory after the first tenth of the output, over the most in it."""

MEGABYTE = 2**20


def main() -> int:
    """Measures three commands, and writes the figures."""
    parser = argparse.ArgumentParser(prog="python -m campaign.memory")
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
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
    return int(any(not fine(figures) for figures in found.values()))


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
