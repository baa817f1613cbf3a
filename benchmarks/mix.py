"""Scores the mixture of models whose weights have been kept, in equal parts or by validation.

    python benchmarks/mix.py power benchmarks/weights/power-nits-mlp-*.safetensors
        → benchmarks/results/power-nits-mixture-108m-seed0.json

With --by-validation the parts are those under which validation rows are likeliest, equation (30).
With --scores FOLDER the scores of each member are kept there, and read if they are there. Minutes
are the sum of its members', or with --at-once those of the longest, if their runs began together
and had a core each. A mixture of exact densities is exact, and nothing is trained.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
from models.fitted import Points, Values, score
from results import RESULTS, ROOT, Record, circumstances, read, write
from run import lowered, name_of, spread
from scores import file_of, named, scaled

import nits
from nits import datasets
from nits.datasets import Split
from nits.tables import stacking

TOGETHER = 10
"""Seconds within which runs begin that are trained at once."""


def member_scores(run: Record, path: Path, split: Split, part: str) -> Values:
    """Returns the nats of validation or test rows, at the scale and in the precision of a run.

    run: The result of the run that has kept its weights in the file.
    """
    settings = run["settings"]
    split, shift = scaled(split, alike=settings.get("alike", False))
    log_prob: Callable[[Points], Values] = partial(score, nits.load(path).log_prob)
    if (low := settings.get("scored_in")) is not None:
        log_prob = lowered(log_prob, low)
    rows = getattr(split, part)
    if (most := settings.get("scored_rows")) is not None:
        rows = spread(rows, most if part == "test" else most // 4)
    return log_prob(rows) + shift


def kept_scores(run: Record, path: Path, split: Split, part: str, folder: Path | None) -> Values:
    """Returns the same, from a folder if it has them; else they are kept there."""
    if folder is None:
        return member_scores(run, path, split, part)
    place = file_of(folder, path.stem, part)
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(place, member_scores(run, path, split, part))
    found: Values = np.load(place)
    return found


def mixture_score(parts: Sequence[Values], shares: Sequence[float]) -> Values:
    """Returns the nats of rows under the mixture of members that have these.

    It is averaged in float64: `nits.Mixture` rounds to float32, which the sixth digit of a mean
    over a quarter of a million rows shows.
    """
    return stacking.mixed(np.stack(parts, 1), np.array(shares))


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


def mixed(dataset: str, paths: list[Path], args: argparse.Namespace, results: Path) -> Record:
    """Returns everything there is to say of the mixture."""
    parts = members(dataset, paths, results)
    budget = minutes(parts, at_once=args.at_once)
    split = datasets.load(dataset)
    every = {
        part: [
            kept_scores(run, path, split, part, args.scores)
            for run, path in zip(parts, paths, strict=True)
        ]
        for part in ("validation", "test")
    }
    shares = [1 / len(paths)] * len(paths)
    if args.by_validation:
        shares = stacking.weights(np.stack(every["validation"], 1)).tolist()
    return {
        **circumstances(),
        "dataset": dataset,
        "model": "nits-mixture",
        "minutes": budget,
        "at_once": args.at_once,
        "shares": shares,
        "seed": parts[0]["seed"],
        "settings_name": "mixture",
        "parameters": sum(part["parameters"] for part in parts),
        "epochs": sum(part["epochs"] for part in parts),
        "members": [part["command"] for part in parts],
        "weights": [part["weights"] for part in parts],
        **named({part: mixture_score(values, shares) for part, values in every.items()}),
    }


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Scores the mixture that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("weights", nargs="+", type=Path)
    parser.add_argument("--by-validation", action="store_true", help="parts by validation rows")
    parser.add_argument("--scores", type=Path, metavar="FOLDER", help="keep members' scores there")
    parser.add_argument("--at-once", action="store_true", help="the members were trained so")
    args = parser.parse_args(argv)
    try:
        found = mixed(args.dataset, args.weights, args, results)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write(results / name_of(found), found)
    print(f"test {found['test_nats_inside']} ± {found['test_two_standard_errors']} nats")
    return 0


if __name__ == "__main__":
    sys.exit(main())
