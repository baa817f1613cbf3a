"""Every public table with our defaults, beside rivals: nats, samples, ranges and anomalies.

    python benchmarks/suite.py [--only NAME …] [--quick] [--model nits|rivals]
        → benchmarks/results/suite-NAME.json

Tables are the files NITS_DATA/tables/NAME.csv.gz and NITS_DATA/anomalies/NAME.npz. A result file
has a part for each model, with the circumstances of its run. A rival's part is kept once it is
there: delete it to measure it again. `--quick` tries the suite on a few rows and writes to out/.
docs/suite.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import suite_anomalies
import suite_densities
import suite_samples
from models import synthesizers
from results import RESULTS, ROOT, Record, circumstances, write
from sklearn.utils import check_random_state
from suite_densities import held_out

import nits

OURS, REAL = "nits", "real rows"
PACKAGES = {"gaussian-copula": "copulas", "tvae": "ctgan", "arf": "arfpy"}
MINUTES: dict[str, float] = {"beijing_air": 8.0}
"""The budget of tables on which the default one would take more than ten minutes."""

SAMPLES, QUICK_SAMPLES = 1_000_000, 500
QUICK_ROWS, QUICK_STEPS = 600, 5


def fitted(rows: Any, name: str, quick: bool, models: Path | None = None) -> tuple[Any, Record]:
    """Returns our model with its defaults, and what there is to say of the fit.

    models: A folder that keeps models, and from which those are taken that are there.
    """
    if models is not None and (models / f"{name}.json").exists():
        about = json.loads((models / f"{name}.json").read_text(encoding="utf-8"))
        return nits.load(models / f"{name}.nits"), about
    model, about = _fitted(rows, name, quick)
    if models is not None:
        models.mkdir(parents=True, exist_ok=True)
        model.save(models / f"{name}.nits")
        write(models / f"{name}.json", about)
    return model, about


def _fitted(rows: Any, name: str, quick: bool) -> tuple[Any, Record]:
    steps, minutes = QUICK_STEPS if quick else None, MINUTES.get(name)
    start = time.perf_counter()
    model = nits.NITSDensity(random_state=0, max_steps=steps, max_minutes=minutes).fit(rows)
    return model, {
        "seconds": time.perf_counter() - start,
        "training_rows": len(rows),
        "fitted_at": circumstances()["commit"],
        "max_minutes": minutes,
        "columns": {c.name: f"{c.kind}: {c.reason}" for c in model.schema_.columns},
        **parts_told(model),
    }


def parts_told(model: Any) -> Record:
    """Returns what a model's parts say alone of rows they held out, and all of them together."""
    return {
        "members": len(model.members_),
        "sorts": model.sorts_,
        "calibrated": isinstance(model.model_, nits.Calibrated),
        "held_out": [model.held_out_, model.held_out_error_],
    }


def our_table(table: Any, name: str, quick: bool) -> Record:
    """Returns our figures of a table: all of it, and the numbers that rivals have densities of."""
    (train, test), numbers = held_out(table), suite_densities.numbers_of(table)
    steps = suite_densities.steps_of(numbers)
    model, found = fitted(train, name, quick)
    found["all_columns"] = found["numeric_columns"] = suite_densities.ours(model, test, steps)
    if numbers.shape != table.shape:
        rows, rest = held_out(numbers)
        found["numeric_columns"] = suite_densities.ours(fitted(rows, name, quick)[0], rest, steps)
    sample = partial(model.sample, random_state=check_random_state(0))
    start, count = time.perf_counter(), QUICK_SAMPLES if quick else SAMPLES
    found["ranges"] = suite_samples.ranges(sample, train, count)
    found["sampling_seconds"] = time.perf_counter() - start
    return {**found, **suite_samples.worth(sample, train, test, name)}


def rival_table(rival: str, table: Any, name: str, quick: bool) -> Record:
    """Returns the figures of a rival's samples, or of training rows as if they were sampled."""
    (train, test), start = held_out(table), time.process_time()
    real = partial(train.sample, random_state=check_random_state(0)), len(train)
    sample, rows = real if rival == REAL else synthesizers.fit(rival, train, quick)
    seconds = time.process_time() - start
    found = suite_samples.worth(sample, train, test, name)
    return {**found, "seconds": seconds, "training_rows": rows}


def our_anomalies(x: Any, y: Any, name: str, quick: bool, models: Path | None) -> Record:
    """Returns our AUROC, and how many rows have no density at all."""
    train, test, label = suite_anomalies.parted(x, y)
    model, found = fitted(train, name, quick, models)
    scores = model.score_samples(test)
    outside = int((scores == -np.inf).sum())
    return {**found, "auroc": suite_anomalies.auroc(scores, label), "rows_outside": outside}


def parts_of(
    path: Path, name: str, quick: bool, models: Path | None = None
) -> dict[str, Callable[[], Record]]:
    """Returns what there is to be measured of a file, by the names of the models."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            x, y = (file[key][-QUICK_ROWS if quick else None :] for key in "Xy")
        ours = partial(our_anomalies, x, y, name, quick, models)
        return {"detectors": partial(suite_anomalies.detectors, x, y), OURS: ours}
    table = pandas.read_csv(path)
    if quick:
        table = table.sample(min(QUICK_ROWS, len(table)), random_state=0)
    return {
        "densities": partial(suite_densities.rivals, table, quick),
        **{one: partial(rival_table, one, table, name, quick) for one in (REAL, *PACKAGES)},
        OURS: partial(our_table, table, name, quick),
    }


def kept(file: Path, kind: str) -> Record:
    """Returns what a result file has, or the beginning of one."""
    new = {"kind": kind}
    found: Record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else new
    return found


def measure(
    file: Path, kind: str, parts: Mapping[str, Callable[[], Record]], model: str | None
) -> None:
    """Measures the parts of a table that are wanted and not there, and keeps each at once."""
    for part, figures in parts.items():
        there = part in kept(file, kind).keys() - {OURS}
        if there or model not in (None, OURS if part == OURS else "rivals"):
            continue
        package = PACKAGES.get(part, "scikit-learn")
        try:
            around = {**circumstances(), "package": {package: version(package)}}
        except PackageNotFoundError:
            print(f"{file.stem}: {part} is left out; make rivals installs it", file=sys.stderr)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("default" if part == OURS else "ignore")
            found = {**around, "results": figures()}
        write(file, {**kept(file, kind), part: found})
        print(f"{file.stem}: {part}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None, folder: Path | None = None) -> int:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tables; all by default")
    parser.add_argument("--quick", action="store_true", help="try the suite on a few rows")
    parser.add_argument("--model", choices=(OURS, "rivals"), help="both by default")
    parser.add_argument("--models", type=Path, help="folder to keep models of anomalies in")
    args = parser.parse_args(argv)
    data = Path(os.environ["NITS_DATA"])
    every = [*sorted(data.glob("anomalies/*.npz")), *sorted(data.glob("tables/*.csv.gz"))]
    paths = {path.name.partition(".")[0]: path for path in every}
    unknown = [name for name in args.only or () if name not in paths]
    if unknown:
        print(f"error: NITS_DATA must have a table {unknown[0]}, but has none.", file=sys.stderr)
        return 2
    place = folder or (ROOT / "out" / "suite" if args.quick else RESULTS)
    for name in args.only or paths:
        path, file = paths[name], place / f"suite-{name}.json"
        measure(file, path.parent.name, parts_of(path, name, args.quick, args.models), args.model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
