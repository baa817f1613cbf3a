"""Scores the mixture, in equal parts, of models whose weights have been kept.

    python benchmarks/mix.py power benchmarks/weights/power-nits-mlp-*.safetensors
        → benchmarks/results/power-nits-mixture-108m-seed0.json

Its minutes are the sum of its members', or with --at-once those of the longest, if their runs began
together and had a core each. A mixture of exact densities is exact, and nothing is trained.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
from models import weights
from models.fitted import Points, Values, score
from results import RESULTS, ROOT, Record, circumstances, read, write
from run import name_of
from scores import held_out, scaled

from nits import datasets

TOGETHER = 10
"""Seconds within which runs begin that are trained at once."""


def mixture_score(paths: list[Path], rows: Points) -> Values:
    """Returns the nats of rows under the mixture of the models in these files, in float64."""
    # nits.Mixture averages in float32, which shows in the sixth decimal of a mean.
    parts = [score(weights.load(path).log_prob, rows) for path in paths]
    mixed: Values = np.logaddexp.reduce(parts) - np.log(len(paths))
    return mixed


def members(dataset: str, paths: list[Path], results: Path) -> list[Record]:
    """Returns the records of the runs that the weights come from."""
    runs = {str(run.get("weights")): run for run in read(results, f"{dataset}-*.json")}
    wanted = [str(path.resolve().relative_to(ROOT)) for path in paths]
    missing = [name for name in wanted if name not in runs]
    if missing:
        raise ValueError(
            f"no result of {dataset} has the weights {missing[0]}; run it with --save first."
        )
    return [runs[name] for name in wanted]


def minutes(parts: list[Record], *, at_once: bool) -> float:
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
            f"members trained at once begin within {TOGETHER} s and have a core per thread, but "
            f"these began {apart:.0f} s apart, with {threads} threads on {cores} cores; leave "
            "--at-once out."
        )
    return max(every)


def mixed(dataset: str, paths: list[Path], results: Path, *, at_once: bool = False) -> Record:
    """Returns everything there is to say of the mixture."""
    parts = members(dataset, paths, results)
    budget = minutes(parts, at_once=at_once)
    split, shift = scaled(datasets.load(dataset))
    return {
        **circumstances(),
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
        **held_out(partial(mixture_score, paths), split, shift),
    }


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Scores the mixture that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("weights", nargs="+", type=Path)
    parser.add_argument("--at-once", action="store_true", help="the members were trained so")
    args = parser.parse_args(argv)
    try:
        found = mixed(args.dataset, args.weights, results, at_once=args.at_once)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write(results / name_of(found), found)
    print(f"test {found['test_nats_inside']} ± {found['test_two_standard_errors']} nats")
    return 0


if __name__ == "__main__":
    sys.exit(main())
