"""One network for every question: what was compared for it, and POWER's half given the other half.

    python benchmarks/answers.py trials power --steps 1500 [--only "the roles" …]
        → benchmarks/results/answers-trials-power.json
    python benchmarks/answers.py power-half --minutes 60 --seeds 0 1 [--joint FILE FILE]
        → benchmarks/results/answers-power-half.json

Trials change one thing at a time and take the same steps; they look at validation rows only. One
that has been measured is not measured again, so that they can be stopped and taken up. `power-half`
trains a network for each seed, with roles by coins, or reads the one that was kept, and scores the
mean of what they say on all test rows; training goes on from a checkpoint if it was stopped. With
`--joint` it starts from these joint networks, one for each seed, whose minutes count besides.
Networks may be trained one by one, in several processes, and then scored together. In both verbs
each entry of a row that is scored is given or asked by the toss of a coin, with a fixed seed. For
`power-half` gaps of columns that are combs are closed, as `NITSDensity` does, and counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joint_start import from_joint
from models.fitted import SCORED_AT_ONCE, Points, Values
from models.ours import support
from results import RESULTS, ROOT, Record, circumstances, write
from role_draws import Coins, SomeCoins, coins, pairs
from scores import nats, scaled, without_gaps
from torch import Tensor

import nits
from nits import datasets
from nits.datasets import Split
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.random_roles import Shares
from nits.model.roles import optional
from nits.weights import Guided, MaskedMLP

ORDERS = [2, 3, 0, 5, 4, 1], [0, 4, 5, 1, 2, 3]
"""Of POWER's columns, by seed: those of the pair in benchmarks/README.md."""

BASE = "the roles"
PLAIN = "no roles: the joint density only"

SETTINGS: dict[str, dict[str, Any]] = {
    "power": {"hidden": 256, "dropout": 0.0, "pnn": 32, "knots": 32, "rate": 6e-3, "batch": 1024},
    "gas_turbine": {
        "hidden": 128,
        "dropout": 0.3,
        "pnn": 16,
        "knots": 8,
        "rate": 2e-3,
        "batch": 256,
    },
    "magic_gamma": {
        "hidden": 64,
        "dropout": 0.3,
        "pnn": 8,
        "knots": 8,
        "rate": 2e-3,
        "batch": 64,
        "rows": 2000,
    },
}
"""Of each data set; with `rows`, only so many of the training rows are learned from."""


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    BASE: lambda s: {},
    PLAIN: lambda s: {"plain": True},
    "given by coins": lambda s: {"shares": Coins()},
    "half of the rows by coins": lambda s: {"shares": SomeCoins()},
    "half of the rows joint": lambda s: {"shares": Shares(joint=0.5)},
    "no rows joint": lambda s: {"shares": Shares(joint=0.0)},
    "nothing absent": lambda s: {"shares": Shares(absent=0.0)},
    "half of the rows with absent columns": lambda s: {"shares": Shares(absent=0.5)},
    "a straight-line guess": lambda s: {"guess": True},
    "twice the width": lambda s: {"hidden": 2 * s["hidden"]},
    "half the width": lambda s: {"hidden": s["hidden"] // 2},
    "twice the steps": lambda s: {"times": 2},
    "a straight-line guess, twice the steps": lambda s: {"guess": True, "times": 2},
}
"""What is changed in the settings, given those."""


def network(train: Points, settings: dict[str, Any], seed: int) -> Density:
    """Returns an untrained network of real columns: with random roles, or a plain one."""
    pnn, knots = (settings["pnn"],), settings["knots"]
    heads = [
        nits.heads.Continuous(low, high, pnn, knots)
        for low, high in zip(*support(train), strict=True)
    ]
    sizes = {"hidden": settings["hidden"], "blocks": 2, "dropout": settings["dropout"]}
    if settings.get("plain"):
        return NITS.mlp(heads, **sizes, generator=seed)
    order = settings.get("order")
    asked = optional(heads)
    inputs = [head.inputs for head in asked]
    net: Any = MaskedMLP(
        inputs, [head.weights for head in asked], sum(inputs), **sizes, generator=seed
    )
    if settings.get("guess"):
        straight = [i for i in range(sum(inputs)) if not 1 <= i % inputs[0] <= knots]
        net = Guided(net, asked, sum(inputs), straight)
    return nits.RandomRoles(nits.Roles(NITS(asked, net, order)), settings.get("shares"))


def recipe(settings: dict[str, Any]) -> nits.Recipe:
    """Returns how networks are trained: to the end of the budget."""
    return nits.Recipe(
        batch_size=settings["batch"],
        learning_rate=settings["rate"],
        optimizer=nits.ScheduleFree(),
        patience=10**9,
    )


def answered(model: Density, rows: Points, slopes: Values) -> dict[str, Values]:
    """Returns the log-densities of rows: of all columns, of a half given the rest, of pairs.

    slopes: What each column that is asked adds for the units of the table.
    """
    more = torch.from_numpy(slopes)
    x, given, two = torch.from_numpy(np.array(rows)), coins(*rows.shape), pairs(*rows.shape)
    found: dict[str, list[Tensor]] = {}
    with torch.no_grad():
        for some in range(0, len(x), SCORED_AT_ONCE):
            here = slice(some, some + SCORED_AT_ONCE)
            found.setdefault("joint", []).append(model.log_prob(x[here]).double() + more.sum())
            if isinstance(model, nits.RandomRoles):
                roles, none = model.roles, torch.zeros_like(given[here])
                half = roles.log_prob(x[here], given[here], ~given[here]).double()
                pair = roles.log_prob(x[here], none, two[here]).double()
                found.setdefault("half", []).append(half + (~given[here]).double() @ more)
                found.setdefault("pair", []).append(pair + two[here].double() @ more)
    return {name: torch.cat(parts).numpy() for name, parts in found.items()}


def figures(models: Sequence[Density], rows: Points, slopes: Values | None = None) -> Record:
    """Returns the means of `answered` with two standard errors, over rows inside the support.

    What several models say is mixed in equal parts.
    """
    more = np.zeros(rows.shape[1]) if slopes is None else slopes
    each = [answered(model, rows, more) for model in models]
    found = {}
    for question in each[0]:
        mixed = np.logaddexp.reduce([said[question] for said in each]) - math.log(len(each))
        one = nats(mixed)
        names = ("two_standard_errors", "rows", "rows_outside")
        found[question] = {"nats": one["nats_inside"], **{name: one[name] for name in names}}
    return found


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


def power_half(args: argparse.Namespace, folder: Path) -> None:
    """Trains on POWER for some minutes for each seed, and scores all test rows."""
    split, slopes = without_gaps(scaled(datasets.load("power"))[0])
    settings = {**SETTINGS["power"], "hidden": args.hidden, "dropout": args.dropout}
    starts = args.joint or [None] * len(args.seeds)
    name = f"answers-power-{args.minutes:g}m-seed"
    paths = [args.weights / f"{name}{seed}.safetensors" for seed in args.seeds]
    for path, seed, joint in zip(paths, args.seeds, starts, strict=True):
        if not path.exists():
            keep(path, split, {**settings, "joint": joint}, args.minutes, seed)
    models: list[Density] = [nits.load(path) for path in paths]
    trained = [json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in paths]
    record = {
        **circumstances(),
        "dataset": "power",
        "minutes": args.minutes,
        "seeds": args.seeds,
        "settings": settings,
        "networks": trained,
        "parameters": sum(p.numel() for model in models for p in model.parameters()),
        "log_slopes": slopes.tolist(),
        "validation": figures(models, split.validation, slopes),
        "test": figures(models, split.test, slopes),
    }
    write(folder / "answers-power-half.json", record)
    print(record["test"])


def keep(path: Path, split: Split, settings: dict[str, Any], minutes: float, seed: int) -> None:
    """Trains the network of a seed and writes it, and how it was trained, to files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    place, joint = path.with_suffix(".checkpoint"), settings["joint"]
    plan, shares = recipe(settings), Coins(absent=0.1)
    if joint is None:
        order = ORDERS[seed % len(ORDERS)]
        model = network(split.train, {**settings, "order": order, "shares": shares}, seed)
    else:
        plan = dataclasses.replace(plan, start_from_data=False)
        model = nits.RandomRoles(from_joint(nits.load(joint), settings["hidden"], seed), shares)
    begun = time.process_time()
    history = nits.fit(
        model,
        split.train,
        validation=split.validation,
        recipe=plan,
        max_minutes=minutes,
        checkpoint=place,
        resume=place if place.exists() else None,
        seed=seed,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    about = {
        "started_from": None if joint is None else joint.name,
        "steps": history.step[-1],
        "best_step": history.best_step,
        "core_seconds": time.process_time() - begun,
    }
    model.save(path)
    write(path.with_suffix(".json"), about)
    place.unlink()


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    half = verbs.add_parser("power-half", help="half of POWER's columns given the other half")
    half.add_argument("--minutes", type=float, default=60.0)
    half.add_argument("--hidden", type=int, default=256)
    half.add_argument("--dropout", type=float, default=0.0)
    half.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    half.add_argument("--joint", type=Path, nargs="+", help="joint networks to start from")
    half.add_argument("--weights", type=Path, default=ROOT / "benchmarks" / "weights")
    half.set_defaults(run=power_half)
    search = verbs.add_parser("trials", help="one change at a time")
    search.add_argument("dataset", choices=list(SETTINGS))
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
