"""`NITSDensity` with its defaults on published splits of real columns: validation and test nats.

    python benchmarks/suite_published.py [--only NAME …] [--test] [--minutes M]
        → benchmarks/results/suite-published-NAME.json

Every column is called continuous, as the protocols have it. The model learns from train rows only;
members hold out folds of these. Test rows are scored with `--test`, once choices are final.
MINIBOONE's train rows are the weighted part that NITS_DATA/miniboone has. With `--minutes` the
budget is the clock's; by default it is counted in steps, so that a busy machine gives the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from models.fitted import Points, Values
from results import RESULTS, ROOT, Record, circumstances, write
from scores import nats
from suite import OURS, QUICK_ROWS, QUICK_STEPS, kept, parts_told

import nits
from nits import datasets

KIND = "published"
MINIBOONE = "miniboone"
NAMES = ("power", MINIBOONE, "gas_turbine", "beijing_air", "diamonds", "magic_gamma")


class Parts(NamedTuple):
    """Rows to learn from and their weights, if they have any; rows to choose by, and to test."""

    train: Points
    weight: Values | None
    validation: Points
    test: Points


def loaded(name: str) -> Parts:
    """Returns a data set as its protocol cuts it."""
    if name == MINIBOONE:
        folder = Path(os.environ["NITS_DATA"]) / name
        files = ("train", "train_weight", "validation", "test")
        train, weight, validation, test = (np.load(folder / f"{file}.npy") for file in files)
        return Parts(train, weight, validation, test)
    split = datasets.load(name)
    return Parts(split.train, None, split.validation, split.test)


def figures(name: str, args: argparse.Namespace) -> Record:
    """Fits our model, and returns what it says of rows that it has not seen."""
    parts, steps = loaded(name), None
    if args.quick:
        steps, rows = QUICK_STEPS, slice(QUICK_ROWS)
        cut = [None if part is None else part[rows] for part in parts]
        parts = Parts(*cut)  # type: ignore[arg-type]
    start = time.perf_counter()
    model = nits.NITSDensity(
        kinds="continuous", random_state=0, max_minutes=args.minutes, max_steps=steps
    ).fit(np.array(parts.train), sample_weight=parts.weight)
    found: Record = {
        "seconds": time.perf_counter() - start,
        "training_rows": len(parts.train),
        "weighted": parts.weight is not None,
        "max_minutes": args.minutes,
        **parts_told(model),
        "validation": nats(model.score_samples(np.array(parts.validation))),
    }
    if args.test:
        found["test"] = nats(model.score_samples(np.array(parts.test)))
    if args.models is not None:
        args.models.mkdir(parents=True, exist_ok=True)
        model.save(args.models / f"{name}.nits")
    return found


def main(argv: list[str] | None = None, folder: Path | None = None) -> int:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help="data sets")
    parser.add_argument("--minutes", type=float, help="for training; by default steps are counted")
    parser.add_argument("--models", type=Path, help="folder to keep the models in")
    parser.add_argument("--test", action="store_true", help="score the test rows, too")
    parser.add_argument("--quick", action="store_true", help="try it on a few rows")
    args = parser.parse_args(argv)
    place = folder or (ROOT / "out" / "suite" if args.quick else RESULTS)
    for name in args.only or NAMES:
        file = place / f"suite-{KIND}-{name}.json"
        found = {**circumstances(), "results": figures(name, args)}
        write(file, {**kept(file, KIND), OURS: found})
        print(f"{file.stem}: {found['results']['validation']}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
