"""Answers about toy densities beside brute force: the share of drawn rows that meet conditions.

    python benchmarks/brute_force.py [--only NAME …] [--rows 10000000] [--steps 500]
        → benchmarks/results/questions-brute_force-NAME.json

A lone network with a companion learns 5,000 rows of a density. Then 50 random questions, shared out
among the densities, ask for the probability that one or two columns lie in ranges, given ranges of
one to three others. The same model's rows that meet the conditions answer them, too, without any of
the methods that are tried here.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from results import RESULTS, Record, circumstances, write

import nits
from nits.datasets import toy

QUESTIONS = 50
LEARNED, AT_ONCE = 5000, 500_000
GIVEN, ASKED = 3, 2
"""Most columns that are given, and asked."""

WIDTHS = 0.1, 0.9
"""Least and most share of a column's rows that a range covers."""

LEAST = 1000
"""Rows that must meet what is given, for their share to tell anything."""

Ranges = dict[str, tuple[float, float]]


def fitted(density: toy.Density, steps: int) -> nits.NITSDensity:
    """Returns a model of some rows of a density."""
    rows = density.sample(LEARNED, torch.Generator().manual_seed(0)).double().numpy()
    table = pandas.DataFrame(rows, columns=[f"x{k}" for k in range(density.dimension)])
    return nits.NITSDensity(answers="any", max_steps=steps, outliers=False, random_state=0).fit(
        table
    )


def drawn(model: nits.NITSDensity, rows: int) -> Any:
    """Returns rows of a model, some at a time."""
    sizes = [min(AT_ONCE, rows - start) for start in range(0, rows, AT_ONCE)]
    parts = [
        model.sample(size, random_state=k).to_numpy(np.float32) for k, size in enumerate(sizes)
    ]
    return pandas.DataFrame(np.concatenate(parts), columns=model.names_)


def ranges(table: Any, names: Any, source: np.random.Generator) -> Ranges:
    """Returns a range of each column around its value in a random row."""
    row = table.iloc[int(source.integers(len(table)))]
    found = {}
    for name in names:
        own = np.sort(table[name].to_numpy()[:20_000].astype(np.float64))
        half = source.uniform(*WIDTHS) / 2
        rank = np.searchsorted(own, row[name]) / len(own)
        low, high = np.quantile(own, [max(rank - half, 0), min(rank + half, 1)])
        found[str(name)] = (float(low), float(high))
    return found


def met(table: Any, told: Ranges) -> NDArray[np.bool_]:
    """Returns which rows lie in all ranges."""
    found = np.ones(len(table), bool)
    for name, (low, high) in told.items():
        values = table[name].to_numpy()
        found &= (values >= np.float32(low)) & (values < np.float32(high))
    return found


def measured(model: nits.NITSDensity, rows: int, questions: int) -> Record:
    """Returns by how many standard errors answers miss the shares of rows, and the sum of it."""
    table, source = drawn(model, rows), np.random.default_rng(1)
    misses: list[float] = []
    sizes, errors = [], []
    while len(misses) < questions:
        names = source.permutation(table.columns)
        given = int(source.integers(1, min(GIVEN, len(names) - 1) + 1))
        asked = int(source.integers(1, min(ASKED, len(names) - given) + 1))
        told = ranges(table, names[:given], source)
        event = ranges(table, names[given : given + asked], source)
        inside = met(table, told)
        n = int(inside.sum())
        if n < LEAST:
            continue
        share = (float((met(table, event) & inside).sum()) + 0.5) / (n + 1)
        answer = model.given(told).probability(event)
        error = float(np.hypot(answer.error, np.sqrt(share * (1 - share) / n)))
        misses.append((float(answer.estimate) - share) / error)
        sizes.append(n)
        errors.append(float(answer.error))
    return {
        "rows": rows,
        "questions": questions,
        "within_3_errors": int(np.sum(np.abs(misses) <= 3)),
        "mean_square": float(np.mean(np.square(misses))),
        "worst": float(np.max(np.abs(misses))),
        "error": float(np.median(errors)),
        "met_by": float(np.median(sizes)),
        "misses": misses,
    }


def shared_out(questions: int) -> dict[str, int]:
    """Returns how many questions each density has."""
    return {
        name: len(range(k, questions, len(toy.DENSITIES))) for k, name in enumerate(toy.DENSITIES)
    }


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Measures the densities that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(toy.DENSITIES), metavar="NAME")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    for name in args.only:
        begun = time.perf_counter()
        model = fitted(toy.density(name), args.steps)
        found = measured(model, args.rows, shared_out(QUESTIONS)[name])
        about = {"table": name, "steps": args.steps, "minutes": None, "members": 1}
        spent = {"seconds": time.perf_counter() - begun}
        path = results / f"questions-brute_force-{name}.json"
        write(path, {**circumstances(), **about, **spent, "results": found})
        print(name, found, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
