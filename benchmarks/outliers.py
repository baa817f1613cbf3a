"""Outlier scores of one cheap model on each anomaly table, beside other scores of the same model.

    python benchmarks/outliers.py [--only NAME …] [--rescaled]
        → benchmarks/results/outliers-NAME.json

Tables are NITS_DATA/anomalies/NAME.npz, parted as the suite parts them. The model is a lone network
of 1,500 steps at most, and the network of blurred rows beside it, which `outlier_scores` asks. Both
are kept in out/outliers/NAME.nits; delete it to train them again. `--rescaled`
trains a second one on a table whose columns are multiplied by 1,000 and 1/1,000 in turns, to see
that scores have no unit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import suite_anomalies
from markdown_table import table as markdown
from numpy.typing import NDArray
from results import RESULTS, ROOT, Record, circumstances, read, write

import nits

MODELS = ROOT / "out" / "outliers"
STEPS = 1500
OURS = "blurred rows"
"""The score that `outlier_scores` returns."""


Numbers = NDArray[np.float64]


def combined(each: Numbers) -> dict[str, Numbers]:
    """Returns ways to make a score of a row from the surprises of its entries, shape (N, D)."""
    finite = np.minimum(each, 1e9)
    falling = -np.sort(-finite, 1)
    columns = each.shape[1]
    return {
        "sum of surprises": finite.sum(1),
        "sum of the larger half": falling[:, : (columns + 1) // 2].sum(1),
        "sum of the √D largest": falling[:, : int(np.ceil(np.sqrt(columns)))].sum(1),
        "largest surprise": falling[:, 0],
        "sum of squares": (finite**2).sum(1),
    }


def fitted(train: NDArray[Any], path: Path) -> Any:
    """Returns the model of a file, or trains it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        nits.NITSDensity(random_state=0, max_steps=STEPS, outliers=True).fit(train).save(path)
    return nits.load(path)


def measured(x: NDArray[Any], y: NDArray[Any], name: str) -> Record:
    """Returns the AUROC of each score, and of the suite's detectors."""
    train, test, label = suite_anomalies.parted(x, y)
    model = fitted(train, MODELS / f"{name}.nits")
    start = time.perf_counter()
    scores = {OURS: -model.outlier_scores(test)}
    seconds = time.perf_counter() - start
    scores["log-density"] = model.score_samples(test)
    each = model.surprises(test)
    scores |= {way: -score for way, score in combined(each).items()}
    ours = {way: suite_anomalies.auroc(score, label) for way, score in scores.items()}
    rows = {"training_rows": len(train), "test_rows": len(test), "columns": each.shape[1]}
    return {**rows, "seconds": seconds, "auroc": ours | suite_anomalies.detectors(x, y)}


def rescaled(x: NDArray[Any], y: NDArray[Any], name: str) -> Record:
    """Returns by how much AUROC and scores change where columns have other units."""
    factor = np.where(np.arange(x.shape[1]) % 2, 1e3, 1e-3)
    found = []
    for times, suffix in ((np.ones(x.shape[1]), ""), (factor, "-rescaled")):
        train, test, label = suite_anomalies.parted(x * times, y)
        model = fitted(train, MODELS / f"{name}{suffix}.nits")
        score = model.outlier_scores(test)
        found.append((suite_anomalies.auroc(-score, label), score))
    (one, a), (two, b) = found
    apart = np.abs(a - b) / np.maximum(np.abs(a), 1.0)
    return {"auroc": one, "auroc_rescaled": two, "median_relative": float(np.median(apart))}


def page(folder: Path) -> str:
    """Returns the means of all tables, and a line for each of them."""
    found = [(r["table"], r["results"]["auroc"]) for r in read(folder, "outliers-*.json")]
    every = [(name, auroc) for name, auroc in found if OURS in auroc]
    if not every:
        return markdown((), ())
    ways = list(every[0][1])
    mean = {way: float(np.mean([auroc[way] for _, auroc in every])) for way in ways}
    best = {way: sum(a[way] >= max(a.values()) - 1e-9 for _, a in every) for way in ways}
    first = markdown(
        ("score", "mean AUROC", "best on"),
        ((way, f"{mean[way]:.4f}", f"{best[way]}") for way in sorted(ways, key=lambda w: -mean[w])),
    )
    shown = (OURS, "sum of surprises", "log-density", *detectors_among(ways))
    lines = ((name, *(f"{a[way]:.3f}" for way in shown)) for name, a in every)
    parts = [first, markdown(("table", *shown), lines)]
    again = [(r["table"], r["results"]) for r in read(folder, "rescaled_outliers-*.json")]
    if again:
        head = ("table", "AUROC", "columns × 1,000 and 1/1,000", "median difference of scores")
        units = (
            (name, f"{r['auroc']:.4f}", f"{r['auroc_rescaled']:.4f}", f"{r['median_relative']:.1e}")
            for name, r in again
        )
        parts.append(markdown(head, units))
    return "\n\n".join(parts)


def detectors_among(ways: list[str]) -> list[str]:
    """Returns the detectors among the scores."""
    ours = {OURS, "log-density", *combined(np.zeros((1, 1)))}
    return [way for way in ways if way not in ours]


def main(argv: list[str] | None = None) -> int:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tables; all by default")
    parser.add_argument("--rescaled", action="store_true", help="train on other units, too")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    tables = (Path(os.environ["NITS_DATA"]) / "anomalies").glob("*.npz")
    for path in sorted(tables, key=lambda path: path.stat().st_size):
        if args.only and path.stem not in args.only:
            continue
        with np.load(path) as file:
            x, y = file["X"], file["y"]
        found = (rescaled if args.rescaled else measured)(x, y, path.stem)
        kind = "rescaled_outliers" if args.rescaled else "outliers"
        record = {**circumstances(), "table": path.stem, "steps": STEPS, "results": found}
        write(RESULTS / f"{kind}-{path.stem}.json", record)
        print(path.stem, found["auroc"], file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
