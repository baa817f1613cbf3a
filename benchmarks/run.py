"""Trains one model on one data set within some minutes and writes what came of it.

    python benchmarks/run.py power --model nits-mlp --minutes 60 --seed 0
        → benchmarks/results/power-nits-mlp-60m-seed0.json

Set-up and compiling count as training; loading the data and scoring the test rows do not.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import models
import numpy as np
import torch
from models.fitted import Fitted, Points, Values, score
from models.ours import ordered
from results import RESULTS, ROOT, Record, circumstances, read, write
from scores import finite, held_out, scaled

import nits
from nits import datasets
from nits.datasets import Split

KINDS = (models.USUAL, "search", "hours", "member", "member-32", "member-256", "pair", "again")

ROUNDED = 500
"""Rows by which scores in a lower precision are held against those in float32."""


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("dataset", choices=datasets.names())
    add("--model", choices=list(models.MODULES), default=models.OURS)
    add("--minutes", type=float, required=True, help="for training, set-up included")
    add("--seed", type=int, default=0)
    add(
        "--settings",
        choices=(*KINDS, models.FREE),
        default=models.USUAL,
        help=f"{models.FREE} is of rivals",
    )
    add("--order", help="of the columns: random, reversed, greedy, or as 2,0,1")
    add("--start", type=Path, help="weights of an earlier run of ours, whose minutes count as well")
    add("--checkpoint", type=Path, help="file to go on with if the run was stopped")
    add("--save", type=Path, help="safetensors file for the weights of a model of ours")
    add("--scores", type=Path, metavar="FOLDER", help="keep the scores there, for mix.py")
    add("--half", action="store_true", help="save in float16 and report what that scores")
    args = parser.parse_args(argv)
    if not args.minutes > 0:
        parser.error(f"--minutes must be positive, but is {args.minutes:g}.")
    if args.save and args.model not in models.ALL_OURS:
        parser.error(f"--save keeps the weights of our models, not of {args.model}.")
    if args.start and args.model not in models.ALL_OURS:
        parser.error(f"--start is of our models, not of {args.model}.")
    if args.checkpoint and args.model not in models.ALL_OURS:
        parser.error(f"--checkpoint is of our models, not of {args.model}.")
    if args.scores and not args.save:
        parser.error("--scores are of weights that are kept, but there is no --save.")
    if args.half and not args.save:
        parser.error("--half says how to save, but there is no --save.")
    return args


def named(path: Path) -> str:
    """Returns how records name a file of weights: from the root of the project, if it is inside."""
    place = path.resolve()
    return str(place.relative_to(ROOT) if place.is_relative_to(ROOT) else place)


def before(args: argparse.Namespace, results: Path) -> Record:
    """Returns the record of the run that this one goes on from."""
    if not args.start:
        return {"minutes": 0.0}
    for run in read(results, f"{args.dataset}-*.json"):
        if run.get("weights") == named(args.start):
            return run
    raise ValueError(
        f"no result of {args.dataset} has the weights {named(args.start)}; run it with --save."
    )


def keep(fitted: Fitted, path: Path, *, half: bool) -> Record:
    """Saves the weights and makes what is in the file the model that is scored."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fitted.model.save(path, half=half)
    fitted.log_prob = partial(score, nits.load(path).log_prob)
    return {"weights": named(path), "half": half}


def lowered(log_prob: Callable[[Points], Values], precision: str) -> Callable[[Points], Values]:
    """Returns scores by a network whose inner layers have that precision.

    It is a density as exact as the one in float32, of a network that rounds its features.
    """

    def scored(rows: Points) -> Values:
        with torch.autocast("cpu", getattr(torch, precision)):
            return log_prob(rows)

    return scored


def rounding(fitted: Fitted, precision: str, rows: Points) -> Record:
    """Returns how much higher some rows score in that precision than in float32."""
    some = np.array(rows[:ROUNDED])
    ahead = lowered(fitted.log_prob, precision)(some) - fitted.log_prob(some)
    error = 2 * float(ahead.std(ddof=1)) / math.sqrt(len(ahead))
    return {"ahead_of_float32": float(ahead.mean()), "two_standard_errors": error}


def spread(rows: Points, most: int) -> Points:
    """Returns at most so many rows, evenly spread."""
    if len(rows) <= most:
        return rows
    found: Points = rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]
    return found


def trained(args: argparse.Namespace, split: Split, results: Path) -> Record:
    """Trains, scores, and returns everything there is to say."""
    settings = models.settings(args.dataset, args.model, args.settings)
    if args.model == models.OURS:
        order = {"order": args.order} if args.order else {}
        settings = ordered({**settings, **order}, split.train, args.seed)
    about, earlier = circumstances(), before(args, results)
    split, shift = scaled(split, alike=settings.get("alike", False))
    names = ("checkpoint", "start")
    kept = {name: value for name in names if (value := getattr(args, name))}
    fitted = models.fit(args.model)(split, {**settings, **kept}, args.minutes, args.seed)
    saved = keep(fitted, args.save, half=args.half) if args.save else {}
    if (low := settings.get("scored_in")) is not None:
        saved["rounding"] = rounding(fitted, low, split.validation)
        fitted.log_prob = lowered(fitted.log_prob, low)
    if (most := settings.get("scored_rows")) is not None:
        split = replace(
            split, validation=spread(split.validation, most // 4), test=spread(split.test, most)
        )
    figures = held_out(
        fitted.log_prob, split, shift, args.save.stem if args.save else "", args.scores
    )
    history = [{"seconds": s, "validation_nats": finite(v + shift)} for s, v in fitted.history]
    return {
        **about,
        "versions": {**about["versions"], **models.versions(args.model)},
        "dataset": args.dataset,
        "model": args.model,
        "minutes": args.minutes + earlier["minutes"],
        **({"start": earlier["command"]} if args.start else {}),
        "seed": args.seed,
        "settings_name": models.kind_of(args.model, args.settings),
        "settings": settings,
        "rows": {"train": len(split.train), "columns": int(np.shape(split.train)[1])},
        "parameters": fitted.parameters,
        "epochs": fitted.epochs,
        "steps": fitted.steps,
        "training_seconds": fitted.seconds,
        "chosen": fitted.chosen,
        "shift": shift,
        **figures,
        **saved,
        "history": history,
    }


def name_of(record: Record) -> str:
    """Returns the name of the result file, which says what it is of."""
    kind = record["settings_name"]
    suffix = "" if kind in (models.USUAL, "rivals", "mixture") else f"-{kind}"
    run = f"{record['minutes']:g}m-seed{record['seed']}{suffix}"
    return f"{record['dataset']}-{record['model']}-{run}.json"


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Runs the benchmark that the command line asks for."""
    args = arguments(argv)
    try:
        found = trained(args, datasets.load(args.dataset), results)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = write(results / name_of(found), found)
    names = ("nats_inside", "two_standard_errors", "rows_outside")
    value, errors, outside = (found[f"test_{name}"] for name in names)
    print(f"test {value} ± {errors} nats inside the support, {outside} rows outside")
    print(f"written to {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
