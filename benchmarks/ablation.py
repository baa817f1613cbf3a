"""What each part of the recipe is worth: one change at a time, the same minutes, validation nats.

    python benchmarks/ablation.py power --settings search --minutes 2 [--only "no hats" …]
        → benchmarks/results/ablation-power-2m.json and docs/images/ablation-power-2m.png
    python benchmarks/ablation.py diamonds --defaults
        the same, from what `NITSDensity` chooses for such a table

A change that has been measured is not measured again, so the search can be stopped and taken up.
Test rows are never looked at: what is chosen here is scored on them once, by `run.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import models
import numpy as np
import torch
from matplotlib.figure import Figure
from models import ours
from models.fitted import OPTIMIZERS, Settings
from results import PLOTS, RESULTS, Record, circumstances, write
from run import KINDS
from scores import nats, scaled

import nits
from nits import datasets
from nits.datasets import Split
from nits.tables import defaults

BASE, AGAIN = "the recipe", "the recipe, another time"
FREE = {"optimizer": "schedule-free", "floor": 1.0}
CHANGES: dict[str, Callable[[Settings], Settings]] = {
    BASE: lambda s: {},
    AGAIN: lambda s: {},
    "no hats": lambda s: {"knots": 0},
    "PNN 16": lambda s: {"pnn": [16]},
    "PNN 64": lambda s: {"pnn": [64]},
    "PNN 16×16": lambda s: {"pnn": [16, 16]},
    "half the width": lambda s: {"hidden": s["hidden"] // 2},
    "twice the width": lambda s: {"hidden": s["hidden"] * 2},
    "1 block": lambda s: {"blocks": 1},
    "4 blocks": lambda s: {"blocks": 4},
    "SiLU": lambda s: {"activation": "silu"},
    "GELU": lambda s: {"activation": "gelu"},
    "half the rate": lambda s: {"learning_rate": s["learning_rate"] / 2},
    "twice the rate": lambda s: {"learning_rate": s["learning_rate"] * 2},
    "half the batch": lambda s: {"batch_size": s["batch_size"] // 2},
    "twice the batch": lambda s: {"batch_size": s["batch_size"] * 2},
    "dropout 0.1": lambda s: {"dropout": 0.1},
    "dropout 0.3": lambda s: {"dropout": 0.3},
    "dropout 0.5": lambda s: {"dropout": 0.5},
    "weight decay 0.01": lambda s: {"weight_decay": 1e-2},
    "no average": lambda s: {"average": 0.0},
    "longer average": lambda s: {"average": 0.9997},
    "constant rate, longer average": lambda s: {"floor": 1.0, "average": 0.9997},
    "schedule-free": lambda s: FREE,
    "schedule-free, twice the rate": lambda s: {**FREE, "learning_rate": s["learning_rate"] * 2},
    "start from noise": lambda s: {"start_from_data": False},
    "columns reversed": lambda s: {"order": "reversed"},
    "a random order": lambda s: {"order": "random"},
    "a greedy order": lambda s: {"order": "greedy"},
}
"""What is changed in the settings, given those."""

NAMED = (BASE, "no hats", "half the width", "schedule-free, twice the rate")
"""Changes that the picture names."""


def measured(
    change: str, split: Split, shift: float, settings: Settings, args: argparse.Namespace
) -> Record:
    """Trains with one change and returns its validation nats with two standard errors."""
    start = ours.ordered(settings, split.train, args.seed + 1)
    changed = {**settings, **CHANGES[change](settings)}
    changed = ours.ordered(changed, split.train, args.seed + 1)
    fitted = ours.fit(split, changed, args.minutes, args.seed)
    found = nats(fitted.log_prob(split.validation) + shift)
    return {
        "change": {name: value for name, value in changed.items() if start.get(name) != value},
        "validation_nats": found["nats_inside"],
        "two_standard_errors": found["two_standard_errors"],
        "rows_outside": found["rows_outside"],
        "parameters": fitted.parameters,
        "steps": fitted.steps,
        "epochs": fitted.epochs,
        "seconds": fitted.seconds,
        "commit": circumstances()["commit"],
        "history": [[seconds, value + shift] for seconds, value in fitted.history],
    }


def build_kernels() -> None:
    """Scores two rows, for which kernels are built: no change has to wait for them."""
    with torch.no_grad():
        nits.NITS.independent(1).log_prob(torch.zeros(2, 1))


def drawn(search: Record) -> Figure:
    """Returns the validation nats of each change against the clock; few of them have a colour."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes, found = figure.subplots(), search["results"]
    for name in found:
        seconds, values = zip(*found[name]["history"], strict=True)
        look = {"label": name, "lw": 2} if name in NAMED else {"color": "0.8", "zorder": 0}
        axes.plot(seconds, values, **look)
    ends = [change["validation_nats"] for change in found.values()]
    low, high = float(np.quantile(ends, 0.1)), max(ends)
    axes.set_ylim(low - 2 * (high - low) - 0.01, high + 0.2 * (high - low) + 0.01)
    title = f"{search['dataset']}, {search['minutes']:g} minutes"
    axes.set(xlabel="seconds, set-up included", ylabel="validation nats", title=title)
    axes.legend(loc="lower right", frameon=False)
    return figure


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=datasets.names())
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(CHANGES), default=list(CHANGES))
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--settings", choices=KINDS, default=models.USUAL, help="to start from")
    start.add_argument("--defaults", action="store_true", help="start from those of NITSDensity")
    return parser.parse_args(argv)


def estimator_defaults(split: Split) -> Settings:
    """Returns what `NITSDensity` chooses for the training rows: one network, of its first style.

    Minutes take the place of steps.
    """
    plan = defaults.plan(*split.train.shape)
    style = plan.styles[0]
    base = models.settings("base", models.OURS)
    chosen = {**style._asdict(), **plan._asdict()}
    return {
        **{name: chosen.get(name, value) for name, value in base.items()},
        "source": "ours: the defaults of NITSDensity",
        "members": 1,
        "pnn": list(style.pnn),
        "knots": plan.knots if style.hats else 0,
        "floor": 1.0 if plan.optimizer == nits.ScheduleFree() else 0.0,
        "optimizer": next(name for name, kind in OPTIMIZERS.items() if kind == plan.optimizer),
    }


def kept(path: Path, settings: Settings) -> Record:
    """Returns what has been measured, if it was from the same settings."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    different = [name for name in settings if found["settings"].get(name) != settings[name]]
    if different:
        name = different[0]
        raise ValueError(
            f"{path.name} was searched from another {name} than {settings[name]!r}; name its "
            "settings with --settings, or move it away."
        )
    earlier: Record = found["results"]
    return earlier


def main(argv: list[str] | None = None, results: Path = RESULTS, plots: Path = PLOTS) -> int:
    """Measures the changes that have not been, and draws all."""
    args = arguments(argv)
    name = f"ablation-{'defaults-' if args.defaults else ''}{args.dataset}-{args.minutes:g}m"
    path = results / f"{name}.json"
    try:
        split, shift = scaled(datasets.load(args.dataset))
        usual = models.settings(args.dataset, models.OURS, args.settings)
        settings = estimator_defaults(split) if args.defaults else usual
        earlier = kept(path, settings)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    about = {name: getattr(args, name) for name in ("dataset", "minutes", "seed", "defaults")}
    found: Record = {**circumstances(), **about, "settings": settings, "results": earlier}
    build_kernels()
    for change in args.only:
        if change not in earlier:
            earlier[change] = measured(change, split, shift, settings, args)
            write(path, found)
            print(f"{change}: {earlier[change]['validation_nats']:.4f}", flush=True)
    drawn(found).savefig(plots / f"{name}.png", dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
