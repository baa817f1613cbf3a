"""Result files, which say how they came about: command, commit, date, hardware and versions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nits

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PLOTS = ROOT / "docs" / "images"

Record = dict[str, Any]


def circumstances() -> Record:
    """Returns what a result depends on besides the code."""
    git = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "command": " ".join(["python", *map(portable, sys.argv)]),
        "commit": commit.stdout.strip(),
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


def write(path: Path, record: Record) -> Path:
    """Writes a record to a file, which appears whole or not at all; a NaN is an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    temporary.write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return temporary.replace(path)


def write_figures(name: str, figures: Record) -> Path:
    """Writes figures with their circumstances to benchmarks/results/NAME.json."""
    return write(RESULTS / f"{name}.json", {**circumstances(), "results": figures})


def read(folder: Path, pattern: str = "*.json") -> list[Record]:
    """Returns the records of a folder, in the order of their names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(pattern))]


def portable(argument: str) -> str:
    """Returns an argument as another machine has it: a path inside the project, or the name."""
    path = Path(argument)
    if not path.exists():
        return argument
    place = path.resolve()
    return str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else place.name


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor()
