"""What one joint model answers on the four tables: boxes, imputation, classes and pairs of columns.

    python benchmarks/ask.py boxes|imputation|classes|marginals [--only NAME …]
                                   [--steps 3000 | --minutes 8]
        → benchmarks/results/questions-VERB-NAME.json

Tables are NITS_DATA/tables/NAME.csv.gz; a model with `answers="any"` is trained on nine tenths of a
table's rows, and kept in out/questions/NAME-BUDGET.nits: all verbs share it. With steps it is a
lone network and its companion, with minutes the default mixture and its companion.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import question_boxes
import question_classes
import question_imputation
import question_marginals
from results import RESULTS, ROOT, Record, circumstances, write
from suite_densities import held_out

import nits

MODELS = ROOT / "out" / "questions"
TABLES = ("gas_turbine", "beijing_air", "diamonds", "magic_gamma")
VERBS: dict[str, Callable[[Any, Any, Any, str], Record]] = {
    "boxes": question_boxes.measured,
    "imputation": question_imputation.measured,
    "classes": question_classes.measured,
    "marginals": question_marginals.measured,
}


def fitted(train: Any, name: str, args: argparse.Namespace) -> Any:
    """Returns the model that is kept, or trains and keeps it."""
    budget = f"{args.minutes:g}m" if args.minutes else f"{args.steps}"
    path = MODELS / f"{name}-{budget}.nits"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        steps = None if args.minutes else args.steps
        nits.NITSDensity(
            answers="any",
            outliers=False,
            max_steps=steps,
            max_minutes=args.minutes,
            random_state=0,
        ).fit(train).save(path)
    return nits.load(path)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=list(VERBS))
    parser.add_argument("--only", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--minutes", type=float)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Measures what the command line names."""
    args = arguments(argv)
    warnings.simplefilter("ignore")
    for name in args.only:
        if args.verb == "classes" and name not in question_classes.TARGETS:
            continue
        table = pandas.read_csv(Path(os.environ["NITS_DATA"]) / "tables" / f"{name}.csv.gz")
        train, test = held_out(table)
        model = fitted(train, name, args)
        begun = time.perf_counter()
        found = VERBS[args.verb](model, train, test, name)
        about = {
            "table": name,
            "steps": None if args.minutes else args.steps,
            "minutes": args.minutes,
            "members": len(model.members_),
            "training_rows": len(train),
            "seconds": time.perf_counter() - begun,
        }
        write(
            results / f"questions-{args.verb}-{name}.json",
            {**circumstances(), **about, "results": found},
        )
        print(name, found, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
