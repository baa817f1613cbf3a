"""What each part of the recipe is worth: one change at a time, the same minutes, validation nats.

    python benchmarks/ablation.py power --settings search --minutes 2 [--only "no hats" …]
        → benchmarks/results/ablation-power-2m.json, and a plot beside docs/recipe.md
    python benchmarks/ablation.py diamonds --defaults
        the same, from what `NITSDensity` chooses for such a table

A change that has been measured is not measured again, so the search can be stopped and taken up;
`--again` starts over. Test rows are never looked at: what is chosen here is scored on them once, by
`run.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import models
import numpy as np
import run
import scale
import torch
from models import nits_mlp, untold
from models.fitted import Settings
from models.normalized import NORMALIZED
from models.orders import ordered

from nits import datasets
from nits.datasets import Split

BASE, AGAIN = "the recipe", "the recipe, another time"
CHANGES: dict[str, Callable[[Settings], Settings]] = {
    BASE: lambda s: {},
    AGAIN: lambda s: {},
    "no hats": lambda s: {"knots": 0},
    "8 hats": lambda s: {"knots": 8},
    "128 hats": lambda s: {"knots": 128},
    "PNN 16": lambda s: {"pnn": [16]},
    "PNN 32": lambda s: {"pnn": [32]},
    "PNN 64": lambda s: {"pnn": [64]},
    "PNN 8×8": lambda s: {"pnn": [8, 8]},
    "PNN 16×16": lambda s: {"pnn": [16, 16]},
    "PNN 24×24": lambda s: {"pnn": [24, 24]},
    "half the width": lambda s: {"hidden": s["hidden"] // 2},
    "twice the width": lambda s: {"hidden": s["hidden"] * 2},
    "1 block": lambda s: {"blocks": 1},
    "4 blocks": lambda s: {"blocks": 4},
    "SiLU": lambda s: {"activation": "silu"},
    "GELU": lambda s: {"activation": "gelu"},
    "normalized": lambda s: {"activation": NORMALIZED},
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
    "schedule-free": lambda s: {"optimizer": "schedule-free", "floor": 1.0},
    "schedule-free, twice the rate": lambda s: {
        "optimizer": "schedule-free",
        "floor": 1.0,
        "learning_rate": s["learning_rate"] * 2,
    },
    "Muon": lambda s: {"optimizer": "muon"},
    "growing batch": lambda s: {"optimizer": "adamw, growing batch"},
    "start from noise": lambda s: {"start_from_data": False},
    "columns reversed": lambda s: {"order": "reversed"},
    "a random order": lambda s: {"order": "random"},
    "a greedy order": lambda s: {"order": "greedy"},
    "three members": lambda s: {"members": 3},
    "whitened": lambda s: {"whiten": True},
}
"""What is changed in the settings, given those."""

PLOTS = measure.ROOT / "docs" / "images"


def measured(
    change: str, split: Split, shift: float, settings: Settings, args: Any
) -> dict[str, Any]:
    """Trains with one change and returns its validation nats with two standard errors."""
    start = ordered(settings, split.train, args.seed + 1)
    changed = ordered({**settings, **CHANGES[change](settings)}, split.train, args.seed + 1)
    if args.minutes >= 1:  # shorter runs are not compiled
        warm_up(split, changed)
    fitted = nits_mlp.fit(split, changed, args.minutes, args.seed)
    found = run.nats(fitted.log_prob(split.validation) + shift)
    return {
        "change": {name: value for name, value in changed.items() if start.get(name) != value},
        "validation_nats": found["nats_inside"],
        "two_standard_errors": found["two_standard_errors"],
        "rows_outside": found["rows_outside"],
        "parameters": fitted.parameters,
        "steps": fitted.steps,
        "epochs": fitted.epochs,
        "seconds": fitted.seconds,
        "commit": measure.circumstances()["commit"],
        "history": [[seconds, value + shift] for seconds, value in fitted.history],
    }


def warm_up(split: Split, settings: Settings) -> None:
    """Compiles the kernels that a run needs, so that no change has to wait for what another left ready."""
    model = nits_mlp.build(nits_mlp.support(split.train[: settings["batch_size"]]), settings)
    model.compiled = model.native = True
    rows = torch.from_numpy(np.array(split.train[: settings["batch_size"]]))
    model.log_prob(rows).mean().backward()
    with torch.no_grad():
        model.log_prob(rows)


def plot(found: dict[str, Any], path: Path) -> None:
    """Draws how far each change ends from the recipe, and the curves against the clock."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results: dict[str, Any] = found["results"]
    base = results[BASE]["validation_nats"]
    names = sorted(results, key=lambda name: results[name]["validation_nats"])
    figure, (bars, curves) = pyplot.subplots(1, 2, figsize=(11, 0.28 * len(names) + 2))
    gains = [results[name]["validation_nats"] - base for name in names]
    reach = (
        2 * float(np.quantile(np.abs(gains), 0.9)) or 1.0
    )  # what ruins all is cut off, but has its number
    drawn = np.clip(gains, -reach, reach)
    labels = bars.barh(names, drawn, color=["C0" if gain >= 0 else "C1" for gain in gains])
    bars.bar_label(labels, [f"{gain:+.3f}" for gain in gains], padding=3, fontsize=8)
    bars.set(xlabel="validation nats, less those of the recipe", xlim=(-1.3 * reach, 1.3 * reach))
    bars.locator_params(axis="x", nbins=5)
    for name in names:
        seconds, values = zip(*results[name]["history"], strict=True)
        shown = name in (BASE, names[-1], "no hats", "schedule-free, twice the rate")
        style: dict[str, Any] = (
            {"label": name, "lw": 2} if shown else {"color": "0.8", "lw": 1, "zorder": 0}
        )
        curves.plot(seconds, values, **style)
    low = max(base - 0.5, min(value for _, value in results[BASE]["history"]))
    high = max(value for name in names for _, value in results[name]["history"])
    limits = (low, high + (0.05 * (high - low) or 1.0))  # a run of one look is a point
    curves.set(xlabel="seconds, set-up included", ylabel="validation nats", ylim=limits)
    curves.legend(loc="lower right")
    threads = found["hardware"]["threads"]
    cores = "one core" if threads == 1 else f"{threads} cores"
    start = ", from the defaults" if found.get("defaults") else ""
    figure.suptitle(f"{found['dataset']}{start}, {found['minutes']:g} minutes on {cores}")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "dataset", choices=sorted(path.stem for path in models.SETTINGS.glob("*.toml"))
    )
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(CHANGES), default=list(CHANGES))
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--settings", choices=run.KINDS, default=run.KINDS[0], help="to start from")
    start.add_argument(
        "--defaults", action="store_true", help="start from the defaults of NITSDensity"
    )
    parser.add_argument("--again", action="store_true", help="measure what has been measured, too")
    return parser.parse_args(argv)


def start_of(args: argparse.Namespace, split: Split) -> Settings:
    """Returns the settings that changes are made to."""
    if args.defaults:
        return untold.settings(split)
    return models.settings(args.dataset, models.OURS, args.settings)


def kept(path: Path, settings: Settings) -> dict[str, Any]:
    """Returns what has been measured, if it was from the same settings."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    for name in set(found["settings"]) & set(settings) - {"source"}:
        if found["settings"][name] != settings[name]:
            raise ValueError(
                f"{path.name} was searched from {name} = {found['settings'][name]!r}, but now it is "
                f"{settings[name]!r}; name those settings with --settings, or start over with --again."
            )
    earlier: dict[str, Any] = found["results"]
    return earlier


def main(
    argv: list[str] | None = None, results: Path = measure.RESULTS, plots: Path = PLOTS
) -> int:
    """Measures the changes that have not been, and draws."""
    args = arguments(argv)
    name = f"ablation-{'defaults-' if args.defaults else ''}{args.dataset}-{args.minutes:g}m"
    path = results / f"{name}.json"
    try:
        split, shift = scale.scaled(datasets.load(args.dataset))
        settings = start_of(args, split)
        earlier = {} if args.again else kept(path, settings)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    about = {
        "ablation_of": args.dataset,
        "dataset": args.dataset,
        "minutes": args.minutes,
        "seed": args.seed,
        "defaults": args.defaults,
    }
    found: dict[str, Any] = {
        **measure.circumstances(),
        **about,
        "settings": settings,
        "results": earlier,
    }
    for change in args.only:
        if change not in found["results"]:
            found["results"][change] = measured(change, split, shift, settings, args)
            path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            print(f"{change}: {found['results'][change]['validation_nats']:.4f}", flush=True)
    if BASE in found["results"]:
        plot(
            json.loads(path.read_text(encoding="utf-8")), plots / f"{name}.png"
        )  # as it was measured
    return 0


if __name__ == "__main__":
    sys.exit(main())
