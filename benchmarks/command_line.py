"""The four public tables through the command line, defaults and all: fit, then score held-out rows.

    python benchmarks/command_line.py [gas_turbine …] [--minutes 5]
        → benchmarks/results/command-line-TABLE.json

Every tenth row is held out. Twice: with all columns; and with the numeric columns of the rows
without missing values, which a Gaussian mixture (the best of 1 … 30 components by validation) can
model too. For the mixture, columns on a grid get uniform noise of one step, in training and in
scoring, as a density on a grid would otherwise be infinite; its density times the step then stands
beside our probabilities.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from results import Record, write_figures

import nits

TABLES = ("gas_turbine", "diamonds", "magic_gamma", "beijing_air")
COMPONENTS = (1, 2, 3, 5, 8, 12, 20, 30)


def command(*argv: object) -> None:
    """Runs a verb of the command line in a process of its own."""
    subprocess.run([sys.executable, "-m", "nits", *map(str, argv), "--quiet"], check=True)


def held_out(table: Any) -> tuple[Any, Any]:
    """Returns nine tenths of the rows, and every tenth in a seeded order."""
    order = np.random.default_rng(0).permutation(len(table))
    return table.iloc[order[len(table) // 10 :]], table.iloc[order[: len(table) // 10]]


def fitted(table: Any, minutes: float, folder: Path) -> Record:
    """Fits and scores through files, and returns the held-out figures."""
    for part, name in zip(held_out(table), ("train.csv", "test.csv"), strict=True):
        part.to_csv(folder / name, index=False)
    model_file, scores = folder / "model.nits", folder / "scores.csv"
    command("fit", folder / "train.csv", "-o", model_file, "--max-minutes", minutes)
    command("score", model_file, folder / "test.csv", "-o", scores)
    values = pandas.read_csv(scores)["log_density"].to_numpy()
    inside = values[values != -np.inf]
    model = nits.load(model_file)
    return {
        "nats": float(inside.mean()),
        "two_standard_errors": 2 * float(inside.std()) / math.sqrt(len(inside)),
        "rows": len(values),
        "rows_outside": len(values) - len(inside),
        "seconds": model.history_["seconds"][-1],
        "columns": {c.name: f"{c.kind}: {c.reason}" for c in model.schema_.columns},
        "steps": [getattr(column, "step", 0.0) for column in model.schema_.columns],
        "weights": sum(p.numel() for p in model.model_.parameters()),
    }


def mixture(table: Any, steps: list[float]) -> Record:
    """Returns the held-out figures of the best Gaussian mixture; real columns have step 0."""
    from sklearn.mixture import GaussianMixture

    every = [GaussianMixture(k, random_state=0, max_iter=200) for k in COMPONENTS]
    best, found = density(table, steps, every)
    return {**found, "components": int(best.n_components)}


def density(
    table: Any, steps: list[float], estimators: list[Any], most_rows: int = 50_000
) -> tuple[Any, Record]:
    """Returns the best of scikit-learn's densities by validation, and its held-out figures."""
    from sklearn.preprocessing import StandardScaler

    noise, width = np.random.default_rng(2), np.array(steps)
    train, test = (
        part.to_numpy(np.float64) + (noise.random(part.shape) - 0.5) * width
        for part in held_out(table)
    )
    train = train[np.random.default_rng(1).permutation(len(train))[:most_rows]]
    scaler = StandardScaler().fit(train)
    cut = len(train) // 10
    rows, validation = scaler.transform(train[cut:]), scaler.transform(train[:cut])
    best = max((one.fit(rows) for one in estimators), key=lambda one: float(one.score(validation)))
    shift = -np.log(scaler.scale_).sum() + sum(math.log(step) for step in steps if step)
    values = best.score_samples(scaler.transform(test)) + shift
    return best, {
        "nats": float(values.mean()),
        "two_standard_errors": 2 * float(values.std()) / math.sqrt(len(values)),
        "training_rows": len(rows),
    }


def measured(name: str, minutes: float) -> Record:
    """Returns all figures of a table."""
    table = pandas.read_csv(Path(os.environ["NITS_DATA"]) / "tables" / f"{name}.csv.gz")
    numeric = table.select_dtypes("number").dropna()
    found: Record = {"minutes": minutes}
    for key, columns in (("all_columns", table), ("numeric_columns", numeric)):
        with tempfile.TemporaryDirectory() as folder:
            found[key] = fitted(columns, minutes, Path(folder))
    return {**found, "gaussian_mixture": mixture(numeric, found["numeric_columns"]["steps"])}


def main(argv: list[str] | None = None) -> int:
    """Measures the tables that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--minutes", type=float, default=5.0)
    args = parser.parse_args(argv)
    for name in args.tables:
        found = measured(name, args.minutes)
        print(json.dumps({name: found}, indent=2), flush=True)
        write_figures(f"command-line-{name}", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
