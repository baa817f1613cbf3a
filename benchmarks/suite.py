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
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import suite_anomalies
import suite_densities
import suite_samples
from command_line import held_out
from models import synthesizers
from results import RESULTS, ROOT, Record, circumstances, write

import nits

OURS, REAL, DENSITIES, DETECTORS = "nits", "real rows", "densities", "detectors"
PACKAGES = {"gaussian-copula": "copulas", "tvae": "ctgan", "arf": "arfpy"}
MINUTES: dict[str, float] = {}
"""The budget of tables on which the default one would take more than ten minutes."""

SAMPLES, QUICK_SAMPLES, QUICK_ROWS, QUICK_STEPS = 1_000_000, 500, 600, 5

Part = Callable[[], Record]


def fitted(rows: Any, name: str, quick: bool) -> tuple[Any, Record]:
    """Returns our model with its defaults, and what there is to say of the fit."""
    steps, minutes = QUICK_STEPS if quick else None, MINUTES.get(name)
    start = time.perf_counter()
    model = nits.NITSDensity(random_state=0, max_steps=steps, max_minutes=minutes).fit(rows)
    return model, {
        "seconds": time.perf_counter() - start,
        "training_rows": len(rows),
        "max_minutes": minutes,
        "columns": {c.name: f"{c.kind}: {c.reason}" for c in model.schema_.columns},
    }


def our_table(table: Any, name: str, quick: bool) -> Record:
    """Returns our figures of a table: all of it, and the numbers that rivals have densities of."""
    train, test = held_out(table)
    numbers = suite_densities.numbers_of(table)
    steps = suite_densities.steps_of(numbers)
    model, found = fitted(train, name, quick)
    found["all_columns"] = suite_densities.ours(model, test, steps)
    if numbers.shape == table.shape:
        found["numeric_columns"] = found["all_columns"]
    else:
        rows, rest = held_out(numbers)
        found["numeric_columns"] = suite_densities.ours(fitted(rows, name, quick)[0], rest, steps)
    seeds = iter(range(SAMPLES))
    found |= suite_samples.worth(sampler(model, seeds), train, test, name)
    start, count = time.perf_counter(), QUICK_SAMPLES if quick else SAMPLES
    found["ranges"] = suite_samples.ranges(sampler(model, seeds), train, count)
    return {**found, "sampling_seconds": time.perf_counter() - start}


def sampler(model: Any, seeds: Iterator[int]) -> suite_samples.Sample:
    """Returns how to sample a model, or a table's rows, each time from the next seed."""
    return lambda count: model.sample(count, random_state=next(seeds))


def rival_table(rival: str, table: Any, name: str, quick: bool) -> Record:
    """Returns the figures of a rival's samples, or of training rows as if they were sampled."""
    train, test = held_out(table)
    start = time.perf_counter()
    if rival == REAL:
        sample, rows = sampler(train, iter(range(9))), len(train)
    else:
        sample, rows = synthesizers.fit(rival, train, quick)
    seconds = time.perf_counter() - start
    found = suite_samples.worth(sample, train, test, name)
    return {**found, "seconds": seconds, "training_rows": rows}


def our_anomalies(x: Any, y: Any, name: str, quick: bool) -> Record:
    """Returns our AUROC, and how many rows have no density at all."""
    train, test, label = suite_anomalies.parted(x, y)
    model, found = fitted(train, name, quick)
    scores = model.score_samples(test)
    infinite = int((scores == -np.inf).sum())
    return {**found, "auroc": suite_anomalies.auroc(scores, label), "rows_outside": infinite}


def parts_of(path: Path, quick: bool) -> dict[str, Part]:
    """Returns what there is to be measured of a file, by the names of the models."""
    name = path.name.partition(".")[0]
    if path.suffix == ".npz":
        with np.load(path) as file:
            x, y = file["X"], file["y"]
        if quick:
            x, y = x[-QUICK_ROWS:], y[-QUICK_ROWS:]
        ours = partial(our_anomalies, x, y, name, quick)
        return {OURS: ours, DETECTORS: partial(suite_anomalies.detectors, x, y)}
    table = pandas.read_csv(path)
    if quick:
        table = table.sample(min(QUICK_ROWS, len(table)), random_state=0)
    samplers = {
        rival: partial(rival_table, rival, table, name, quick) for rival in (REAL, *PACKAGES)
    }
    densities = partial(suite_densities.rivals, table, quick)
    return {OURS: partial(our_table, table, name, quick), DENSITIES: densities, **samplers}


def measure(path: Path, folder: Path, models: tuple[str, ...], quick: bool) -> None:
    """Measures the parts of a file that are wanted and not there, and keeps each at once."""
    name = path.name.partition(".")[0]
    kept = folder / f"suite-{name}.json"
    kind = path.parent.name
    found: Record = json.loads(kept.read_text("utf-8")) if kept.exists() else {"kind": kind}
    for model, part in parts_of(path, quick).items():
        ours = model == OURS
        if (OURS if ours else "rivals") not in models or (model in found and not ours):
            continue
        package = PACKAGES.get(model, "scikit-learn")
        try:
            circumstance = {**circumstances(), "package": {package: version(package)}}
        except PackageNotFoundError:
            print(f"{name}: {model} is not installed; see make rivals", file=sys.stderr)
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("default" if ours else "ignore")
            found[model] = {**circumstance, "results": part()}
        write(kept, found)
        print(f"{name}: {model}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None, folder: Path | None = None) -> int:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tables; all by default")
    parser.add_argument("--quick", action="store_true", help="try the suite on a few rows")
    parser.add_argument("--model", choices=(OURS, "rivals"), help="both by default")
    args = parser.parse_args(argv)
    data = Path(os.environ["NITS_DATA"])
    every = [*sorted(data.glob("anomalies/*.npz")), *sorted(data.glob("tables/*.csv.gz"))]
    names = {path.name.partition(".")[0]: path for path in every}
    unknown = sorted(set(args.only or names) - set(names))
    if unknown or not names:
        print(f"error: {data.name} has no table {', '.join(unknown)}", file=sys.stderr)
        return 2
    place = folder or (ROOT / "out" / "suite" if args.quick else RESULTS)
    models = (args.model,) if args.model else ("rivals", OURS)
    for name in args.only or names:
        measure(names[name], place, models, args.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
