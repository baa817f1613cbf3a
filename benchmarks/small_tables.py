"""The rate and the epochs of small tables: validation nats of `NITSDensity`, all else by default.

    python benchmarks/small_tables.py [--only yacht …]  → benchmarks/results/small-tables.json

Tables are those of NITS_DATA/regression, all columns, and the normal rows of NITS_DATA/anomalies. A
fifth of the rows is left out, as for a test, and not looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from results import RESULTS, Record, circumstances, write

import nits
from nits.tables.defaults import plan

TABLES = ("yacht", "energy", "concrete", "cardio", "wdbc", "kin8nm", "glass", "pima")
TRIALS = ((1e-3, 60), (3e-3, 60), (5e-3, 60), (5e-3, 120))
"""Pairs of a learning rate and epochs."""


def rows_of(name: str) -> Any:
    """Returns four fifths of a table's rows, in a seeded order."""
    data = Path(os.environ["NITS_DATA"])
    with np.load(next(data.glob(f"[ar][ne]*/{name}.npz"))) as file:
        whole = "x" in file
        x = np.c_[file["x"], file["y"].ravel()] if whole else file["X"][file["y"].ravel() == 0]
    return x[np.random.default_rng(0).permutation(len(x))[len(x) // 5 :]]


def tried(rows: Any, rate: float, epochs: int) -> float | None:
    """Returns the validation nats after so many epochs at a rate."""
    steps = int(max(400, epochs * len(rows) / plan(*rows.shape).batch_size))
    model = nits.NITSDensity(learning_rate=rate, max_steps=steps, random_state=0)
    return model.fit(rows).held_out_


def label(rate: float, epochs: int) -> str:
    """Returns the words for a trial."""
    return f"{rate:g}, {epochs} epochs"


def main(argv: list[str] | None = None) -> int:
    """Tries every setting on every table, and keeps each table at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, help="tables")
    args = parser.parse_args(argv)
    place = RESULTS / "small-tables.json"
    found: Record = json.loads(place.read_text())["results"] if place.exists() else {}
    for name in args.only:
        rows = rows_of(name)
        trials = {label(*trial): tried(rows, *trial) for trial in TRIALS}
        found[name] = {"rows": len(rows), "columns": rows.shape[1], "validation_nats": trials}
        write(place, {**circumstances(), "results": found})
        print(name, trials, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
