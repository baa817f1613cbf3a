"""nits predict: what a model says of the columns that it models, given the others in each row."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow
import torch

from nits.cli.commands.score import arrow_types
from nits.cli.models import load, refuse_images
from nits.tables import classes, files, targets, zones
from nits.tables.conditional import Conditional
from nits.tables.validate import checked_levels
from nits.training.progress import Counter


def run(args: argparse.Namespace) -> int:
    """Reads, predicts and writes in constant memory."""
    model = load(args.model)
    refuse_images(model, "predict")
    levels = checked_levels(args.levels)
    if not model.context_schema_.columns:
        raise ValueError(
            "nits predict takes a model with columns to predict from, but this one has none; "
            "name them in nits fit --context."
        )
    rows = 0
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        Counter("rows", quiet=args.quiet, total=files.rows(args.table)) as counter,
    ):
        for table in files.batches(args.table, arrow_types(model, given=True)):
            with files.named(args.table):
                found = _predicted(model, table, levels)
            writer.write(found)
            rows += len(table)
            counter.add(len(table))
        if not rows:
            raise ValueError(f"{args.table} must have at least one row, but has none.")
    return 0


def _predicted(model: Any, table: pyarrow.Table, levels: Any) -> pyarrow.Table:
    """Returns means and quantiles of numbers, and probabilities of classes, for each row."""
    laws = targets.laws(model, model._given(zones.read(table)))
    columns: dict[str, Any] = {}
    with torch.no_grad():
        for law in laws:
            columns |= _of_classes(law) if _has_classes(law) else _of_numbers(law, levels)
    return pyarrow.table(columns)


def _has_classes(law: Conditional) -> bool:
    return law.column.kind == "categorical" or law.column.facts.ordered


def _of_classes(law: Conditional) -> dict[str, Any]:
    name, known = law.column.name, classes.of(law.column)
    shares = classes.probabilities(law, known)
    best = known[shares.argmax(1)]
    found = {name: best.astype(str) if best.dtype == object else best}
    return found | {f"P({name}={level})": shares[:, k] for k, level in enumerate(known)}


def _of_numbers(law: Conditional, levels: Any) -> dict[str, Any]:
    name, quantiles = law.column.name, law.quantiles(levels)
    found = {name: np.asarray(law.mean())}
    return found | {f"{name} q{level:g}": quantiles[:, k] for k, level in enumerate(levels)}
