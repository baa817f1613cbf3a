"""Trains one model on one data set within some minutes and writes what came of it.

    python benchmarks/run.py power --model nits-mlp --minutes 60 --seed 0
        → benchmarks/results/power-nits-mlp-60m-seed0.json

Set-up and compiling count as training; loading the data and scoring the test rows do not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import measure
import models
import numpy as np
import scale
from models import nits_mlp
from models.fitted import Fitted, Rows, Settings, Values
from models.nits_training import FittedNITS, score
from models.orders import ordered

from nits import datasets
from nits.datasets import Split

KINDS = (
    "two-core",
    "search",
    "hours",
    "member",
    "member-32",
    "member-256",
    "pair",
    "paper",
    models.FREE,
)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "dataset", choices=sorted(path.stem for path in models.SETTINGS.glob("*.toml"))
    )
    parser.add_argument("--model", choices=list(models.FAMILIES), default=models.OURS)
    parser.add_argument(
        "--minutes", type=float, required=True, help="for training, set-up included"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--settings",
        choices=KINDS,
        default=KINDS[0],
        help=f"of our models, or {models.FREE} of rivals",
    )
    parser.add_argument(
        "--order",
        help="of the columns: random, reversed, greedy, or as 2,0,1; instead of the settings'",
    )
    parser.add_argument("--save", type=Path, help="safetensors file for the weights of nits-mlp")
    parser.add_argument(
        "--half", action="store_true", help="save in float16 and report what that scores"
    )
    args = parser.parse_args(argv)
    if not args.minutes > 0:
        parser.error(f"--minutes must be positive, but is {args.minutes:g}.")
    if args.save and args.model != models.OURS:
        parser.error(f"--save keeps the weights of {models.OURS} only, not of {args.model}.")
    if args.half and not args.save:
        parser.error("--half says how to save, but there is no --save.")
    return args


def nats(values: Values) -> dict[str, Any]:
    """Returns means over all rows and over those inside the support; None for what is not finite."""
    inside = values[values != -math.inf]
    error = 2 * float(inside.std(ddof=1)) / math.sqrt(len(inside)) if len(inside) > 1 else math.nan
    return {
        "nats": _finite(float(values.mean())),
        "nats_inside": _finite(float(inside.mean())) if len(inside) else None,
        "two_standard_errors": _finite(error),
        "rows": len(values),
        "rows_outside": len(values) - len(inside),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def scores(fitted: Fitted, split: Split, shift: float) -> dict[str, Any]:
    """Returns the validation and test figures, under names that say which; see `scale` for the shift."""
    parts: dict[str, Rows] = {"validation": split.validation, "test": split.test}
    return {
        f"{part}_{name}": value
        for part, rows in parts.items()
        for name, value in nats(fitted.log_prob(rows) + shift).items()
    }


def keep(fitted: Fitted, settings: Settings, path: Path, *, half: bool) -> dict[str, Any]:
    """Saves the weights and makes what is in the file the model that is scored."""
    if not isinstance(fitted, FittedNITS) or fitted.model is None:
        raise ValueError(
            "the weights of a mixture cannot be kept; set members to 1, and mix with mix.py."
        )
    nits_mlp.save(fitted.model, settings, path, half=half)
    stored = nits_mlp.load(path)
    fitted.log_prob = lambda rows: score(stored, rows)
    place = path.resolve()
    inside = place.is_relative_to(measure.ROOT)
    return {"weights": str(place.relative_to(measure.ROOT) if inside else place), "half": half}


def record(args: argparse.Namespace, split: Split) -> dict[str, Any]:
    """Trains, scores, and returns everything there is to say."""
    settings = models.settings(args.dataset, args.model, args.settings)
    if args.model == models.OURS:
        order = {"order": args.order} if args.order else {}
        settings = ordered({**settings, **order}, split.train, args.seed)
    circumstances = measure.circumstances()
    split, shift = scale.scaled(split)
    fitted = models.fit(args.model)(split, settings, args.minutes, args.seed)
    weights = keep(fitted, settings, args.save, half=args.half) if args.save else {}
    return {
        **circumstances,
        "versions": {**circumstances["versions"], **models.versions(args.model)},
        "dataset": args.dataset,
        "model": args.model,
        "minutes": args.minutes,
        "seed": args.seed,
        "settings_name": models.group(args.model, args.settings),
        "settings": settings,
        "rows": {"train": len(split.train), "columns": int(np.shape(split.train)[1])},
        "parameters": fitted.parameters,
        "epochs": fitted.epochs,
        "steps": fitted.steps,
        "training_seconds": fitted.seconds,
        "chosen": fitted.chosen,
        "shift": shift,
        **scores(fitted, split, shift),
        **weights,
        "history": [
            {"seconds": s, "validation_nats": _finite(v + shift)} for s, v in fitted.history
        ],
    }


def write(found: dict[str, Any], results: Path) -> Path:
    """Writes a record under a name that says what it is of."""
    suffix = "" if found["settings_name"] in (KINDS[0], "rivals") else f"-{found['settings_name']}"
    name = f"{found['dataset']}-{found['model']}-{found['minutes']:g}m-seed{found['seed']}{suffix}.json"
    results.mkdir(parents=True, exist_ok=True)
    temporary = results / f"{name}.part"
    temporary.write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return temporary.replace(results / name)


def main(argv: list[str] | None = None, results: Path = measure.RESULTS) -> int:
    """Runs the benchmark that the command line asks for."""
    args = arguments(argv)
    try:
        found = record(args, datasets.load(args.dataset))
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = write(found, results)
    names = ("nats_inside", "two_standard_errors", "rows_outside")
    value, errors, outside = (found[f"test_{name}"] for name in names)
    print(f"test {value} ± {errors} nats inside the support, {outside} rows outside")
    print(f"written to {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
