"""One network for every question: what was compared for it, and half the columns given the rest.

    python benchmarks/answers.py trials power --steps 1500 [--only "the roles" …]
        → benchmarks/results/answers-trials-power.json
    python benchmarks/answers.py power-half --minutes 60 --seeds 0 1 [--joint FILE FILE]
        → benchmarks/results/answers-power-half.json
    python benchmarks/answers.py miniboone-half --minutes 5 --seeds 0
        → benchmarks/results/answers-miniboone-half.json

Trials change one thing at a time and take the same steps; they look at validation rows only. One
that has been measured is not measured again, so that they can be stopped and taken up. The others
train a network for each seed, with roles by coins, or read the one that was kept, and score the
mean of what they say on all test rows; training goes on from a checkpoint if it was stopped. With
`--joint` it starts from these joint networks, one for each seed, whose minutes count besides.
Networks may be trained one by one, in several processes, and then scored together. In all verbs
each entry of a row that is scored is given or asked by the toss of a coin, with a fixed seed. For
`power-half` gaps of columns that are combs are closed, as `NITSDensity` does, and counted.
MINIBOONE's train rows are the weighted part that NITS_DATA/miniboone has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answers_half
import torch
from answers_networks import SETTINGS, figures, network, recipe
from results import RESULTS, ROOT, Record, circumstances, write
from role_draws import Coins, SomeCoins
from scores import scaled

import nits
from nits import datasets
from nits.datasets import Split
from nits.model.random_roles import Shares

TRIED = ("power", "gas_turbine", "magic_gamma")
"""Data sets of the trials."""

OLD = {"shares": Shares(alone=0.0)}
"""What the trials change: columns are absent only in rows in which others are given."""

BASE = "the roles"
PLAIN = "no roles: the joint density only"

CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    BASE: lambda s: OLD,
    "columns absent where nothing is given": lambda s: {"shares": Shares()},
    PLAIN: lambda s: {"plain": True},
    "given by coins": lambda s: {"shares": Coins(alone=0.0)},
    "half of the rows by coins": lambda s: {"shares": SomeCoins(alone=0.0)},
    "half of the rows joint": lambda s: {"shares": Shares(joint=0.5, alone=0.0)},
    "no rows joint": lambda s: {"shares": Shares(joint=0.0, alone=0.0)},
    "nothing absent": lambda s: {"shares": Shares(absent=0.0, alone=0.0)},
    "half of the rows with absent columns": lambda s: {"shares": Shares(absent=0.5, alone=0.0)},
    "a straight-line guess": lambda s: {**OLD, "guess": True},
    "twice the width": lambda s: {**OLD, "hidden": 2 * s["hidden"]},
    "half the width": lambda s: {**OLD, "hidden": s["hidden"] // 2},
    "twice the steps": lambda s: {**OLD, "times": 2},
    "a straight-line guess, twice the steps": lambda s: {**OLD, "guess": True, "times": 2},
}
"""What is changed in the settings, given those."""


def measured(change: str, split: Split, steps: int, seed: int) -> Record:
    """Trains with one change and returns its figures on validation rows."""
    base = SETTINGS[split.name]
    settings = {**base, **CHANGES[change](base)}
    train = split.train[: settings.get("rows")]
    steps = steps * settings.get("times", 1)
    model = network(train, settings, seed)
    begun = time.process_time()
    history = nits.fit(
        model,
        train,
        validation=split.validation,
        recipe=recipe(settings),
        max_steps=steps,
        seed=seed,
    )
    return {
        "rows": len(train),
        "steps": steps,
        "best_step": history.best_step,
        "core_seconds": time.process_time() - begun,
        "parameters": sum(p.numel() for p in model.parameters()),
        "commit": circumstances()["commit"],
        "validation": figures([model], split.validation),
    }


def trials(args: argparse.Namespace, folder: Path) -> None:
    """Measures the changes that have not been measured yet, and writes after each."""
    torch.set_num_threads(1)
    path = folder / f"answers-trials-{args.dataset}.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"results": {}}
    split, _ = scaled(datasets.load(args.dataset))
    about = {"dataset": args.dataset, "seed": args.seed, "settings": SETTINGS[args.dataset]}
    for change in args.only:
        if change not in old["results"]:
            old["results"][change] = measured(change, split, args.steps, args.seed)
            write(path, {**circumstances(), **about, "results": old["results"]})
            print(change, old["results"][change]["validation"], flush=True)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in answers_half.LOADED:
        half = verbs.add_parser(f"{name}-half", help=f"half of {name}'s columns given the others")
        half.add_argument("--minutes", type=float, default=60.0)
        half.add_argument("--hidden", type=int)
        half.add_argument("--dropout", type=float)
        half.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
        half.add_argument("--joint", type=Path, nargs="+", help="joint networks to start from")
        half.add_argument("--weights", type=Path, default=ROOT / "benchmarks" / "weights")
        half.set_defaults(run=answers_half.half, dataset=name)
    search = verbs.add_parser("trials", help="one change at a time")
    search.add_argument("dataset", choices=TRIED)
    search.add_argument("--steps", type=int, default=1500)
    search.add_argument("--only", nargs="+", choices=list(CHANGES), default=list(CHANGES))
    search.add_argument("--seed", type=int, default=0)
    search.set_defaults(run=trials)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Runs what the command line asks for."""
    args = arguments(argv)
    try:
        args.run(args, results)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
