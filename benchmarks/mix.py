"""Scores the mixture, in equal parts, of models whose weights have been kept.

    python benchmarks/mix.py power benchmarks/weights/power-nits-mlp-*.safetensors
        → benchmarks/results/power-nits-mixture-108m-seed0.json

Its minutes are the sum of its members', or with --at-once those of the longest, if their runs began
together and had a core each. A mixture of exact densities is exact, and nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import measure
import numpy as np
import run
import scale
from models import nits_mlp, nits_training
from models.fitted import Rows, Values

from nits import datasets

TOGETHER = 10
"""Seconds within which runs begin that are trained at once."""


def score(paths: list[Path], rows: Rows) -> Values:
    """Returns the nats of rows under the mixture of the models in these files."""
    parts = np.stack([nits_training.score(nits_mlp.load(path), rows) for path in paths])
    mixed: Values = np.logaddexp.reduce(parts, axis=0) - np.log(len(paths))
    return mixed


def members(dataset: str, paths: list[Path], results: Path) -> list[dict[str, Any]]:
    """Returns the records of the runs that the weights come from."""
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(results.glob(f"{dataset}-*.json"))
    ]
    wanted = [str(path.resolve().relative_to(measure.ROOT)) for path in paths]
    found = {
        record.get("weights"): record for record in runs if isinstance(record.get("weights"), str)
    }
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ValueError(
            f"no result of {dataset} has the weights {missing[0]}; run it with --save first."
        )
    return [found[name] for name in wanted]


def minutes(parts: list[dict[str, Any]], *, at_once: bool) -> float:
    """Returns the minutes that the members took, after one another or at the same time."""
    every: list[float] = [part["minutes"] for part in parts]
    if not at_once:
        return sum(every)
    began = [datetime.fromisoformat(part["date"]) for part in parts]
    apart = (max(began) - min(began)).total_seconds()
    threads = sum(part["hardware"]["threads"] for part in parts)
    cores = parts[0]["hardware"]["cores"]
    if apart > TOGETHER or threads > cores:
        raise ValueError(
            f"members trained at once begin within {TOGETHER} s and have a core per thread, but these began "
            f"{apart:.0f} s apart, with {threads} threads on {cores} cores; leave --at-once out."
        )
    return max(every)


def record(
    dataset: str, paths: list[Path], results: Path, *, at_once: bool = False
) -> dict[str, Any]:
    """Returns everything there is to say of the mixture."""
    parts = members(dataset, paths, results)
    budget = minutes(parts, at_once=at_once)
    split, shift = scale.scaled(datasets.load(dataset))
    figures = {
        f"{name}_{key}": value
        for name, rows in (("validation", split.validation), ("test", split.test))
        for key, value in run.nats(score(paths, rows) + shift).items()
    }
    return {
        **measure.circumstances(),
        "dataset": dataset,
        "model": "nits-mixture",
        "minutes": budget,
        "at_once": at_once,
        "seed": parts[0]["seed"],
        "settings_name": "mixture",
        "parameters": sum(part["parameters"] for part in parts),
        "epochs": sum(part["epochs"] for part in parts),
        "members": [part["command"] for part in parts],
        "weights": [part["weights"] for part in parts],
        **figures,
    }


def main(argv: list[str] | None = None, results: Path = measure.RESULTS) -> int:
    """Scores the mixture that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("weights", nargs="+", type=Path)
    parser.add_argument(
        "--at-once", action="store_true", help="the members were trained at the same time"
    )
    args = parser.parse_args(argv)
    try:
        found = record(args.dataset, args.weights, results, at_once=args.at_once)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = results / f"{args.dataset}-nits-mixture-{found['minutes']:g}m-seed{found['seed']}.json"
    path.write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    print(f"test {found['test_nats_inside']} ± {found['test_two_standard_errors']} nats")
    return 0


if __name__ == "__main__":
    sys.exit(main())
