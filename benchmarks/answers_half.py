"""Half of the columns given the other half, by the toss of coins: POWER and MINIBOONE."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from answers_networks import SETTINGS, figures, network, recipe
from joint_start import from_joint
from models.fitted import Values
from results import circumstances, write
from role_draws import Coins
from scores import scaled, without_gaps

import nits
from nits import datasets
from nits.datasets import Split
from nits.model.density import Density

ORDERS: dict[str, list[list[int] | None]] = {"power": [[2, 3, 0, 5, 4, 1], [0, 4, 5, 1, 2, 3]]}
"""Of the columns, by seed: those of the pair in benchmarks/README.md; elsewhere the table's."""

Loaded = tuple[Split, Values | None, Values]


def power() -> Loaded:
    """Returns the split, no weights of its rows, and what closed gaps add for each column."""
    split, slopes = without_gaps(scaled(datasets.load("power"))[0])
    return split, None, slopes


def miniboone() -> Loaded:
    """Returns the split, whose train rows are the weighted part that could be had."""
    import suite_published  # which needs scikit-learn, and tables of results do without

    train, weight, validation, test = suite_published.loaded("miniboone")
    columns = tuple(str(k) for k in range(train.shape[1]))
    rows = [np.asarray(part, np.float32) for part in (train, validation, test)]
    split = Split("miniboone", rows[0], rows[1], rows[2], columns)
    return split, weight, np.zeros(len(columns))


LOADED: dict[str, Callable[[], Loaded]] = {"power": power, "miniboone": miniboone}


def half(args: argparse.Namespace, folder: Path) -> None:
    """Trains on a data set for some minutes for each seed, and scores all test rows."""
    split, weight, slopes = LOADED[args.dataset]()
    named = {"hidden": args.hidden, "dropout": args.dropout}
    own = {name: value for name, value in named.items() if value is not None}
    settings = {**SETTINGS[args.dataset], **own}
    starts = args.joint or [None] * len(args.seeds)
    name = f"answers-{args.dataset}-{args.minutes:g}m-seed"
    paths = [args.weights / f"{name}{seed}.safetensors" for seed in args.seeds]
    for path, seed, joint in zip(paths, args.seeds, starts, strict=True):
        if not path.exists():
            keep(path, split, weight, {**settings, "joint": joint}, args.minutes, seed)
    models: list[Density] = [nits.load(path) for path in paths]
    trained = [json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in paths]
    record = {
        **circumstances(),
        "dataset": args.dataset,
        "training_rows": len(split.train),
        "weighted": weight is not None,
        "minutes": args.minutes,
        "seeds": args.seeds,
        "settings": {name: told(value) for name, value in settings.items()},
        "networks": trained,
        "parameters": sum(p.numel() for model in models for p in model.parameters()),
        "log_slopes": slopes.tolist(),
        "validation": figures(models, split.validation, slopes),
        "test": figures(models, split.test, slopes),
    }
    write(folder / f"answers-{args.dataset}-half.json", record)
    print(record["test"])


def told(setting: Any) -> Any:
    """Returns a setting as a result file has it."""
    return setting if isinstance(setting, int | float | str | bool) else repr(setting)


def keep(
    path: Path,
    split: Split,
    weight: Values | None,
    settings: dict[str, Any],
    minutes: float,
    seed: int,
) -> None:
    """Trains the network of a seed and writes it, and how it was trained, to files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    place, joint = path.with_suffix(".checkpoint"), settings["joint"]
    plan, shares = recipe(settings), Coins(absent=0.1, alone=0.0)
    if joint is None:
        several = ORDERS.get(split.name, [None])
        order = several[seed % len(several)]
        model = network(split.train, {**settings, "order": order, "shares": shares}, seed)
    else:
        plan = dataclasses.replace(plan, start_from_data=False)
        model = nits.RandomRoles(from_joint(nits.load(joint), settings["hidden"], seed), shares)
    begun = time.process_time()
    history = nits.fit(
        model,
        split.train,
        sample_weight=weight,
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
