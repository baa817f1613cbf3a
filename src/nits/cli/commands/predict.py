"""nits predict: what a model says of some columns, given the others in each row."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow
import torch

from nits.cli import outputs
from nits.cli.commands.score import arrow_types
from nits.cli.models import load, refuse_images
from nits.tables import classes, files, targets, zones
from nits.tables.conditional import Conditional
from nits.tables.validate import checked_levels


def run(args: argparse.Namespace) -> int:
    """Reads, predicts and writes in constant memory."""
    model = load(args.model)
    refuse_images(model, "predict")
    levels = checked_levels(args.levels)
    supervised = bool(model.context_schema_.columns)
    if supervised and args.column:
        raise ValueError(
            "--column is for models of all columns, but this one has a --context, given which it "
            f"predicts {', '.join(model.schema_.names)}; leave it out."
        )
    rows = 0
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        outputs.counter(args, files.rows(args.table)) as counter,
    ):
        for table in files.batches(args.table, arrow_types(model, given=supervised)):
            with files.named(args.table):
                if supervised:
                    found = _predicted(model, table, levels)
                else:
                    found = pyarrow.table(_answered(model, table, args.column, levels))
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


def _answered(model: Any, table: pyarrow.Table, asked: list[str], levels: Any) -> dict[str, Any]:
    """Returns the same of columns that a table lacks, or of those asked for, given its others."""
    wanted = asked or [name for name in model.schema_.names if name not in table.column_names]
    if not wanted:
        raise ValueError(
            "the table must lack a column to predict, but has all; name one with --column."
        )
    for name in wanted:
        model.given().marginal([name])  # refuses unknown ones
    rest = [name for name in table.column_names if name not in wanted]
    answers = model.given_rows(table.select(rest))
    columns: dict[str, Any] = {}
    for name in wanted:
        column = model.schema_.columns[model.schema_.names.index(name)]
        if column.kind == "categorical" or column.facts.ordered:
            shares = answers.proba(name)
            known = np.array(list(model.given().proba(name)))
            columns |= _shares(name, known, np.asarray(shares))
        else:
            quantiles = np.asarray(answers.quantiles(name, levels))
            columns[name] = np.asarray(answers.mean(name))
            columns |= _named(name, quantiles, levels)
    return columns


def _has_classes(law: Conditional) -> bool:
    return law.column.kind == "categorical" or law.column.facts.ordered


def _of_classes(law: Conditional) -> dict[str, Any]:
    name, known = law.column.name, classes.of(law.column)
    return _shares(name, known, classes.probabilities(law, known))


def _shares(name: str, known: Any, shares: Any) -> dict[str, Any]:
    """Returns the most probable class of each row, and the probabilities of all."""
    best = known[shares.argmax(1)]
    found = {name: best.astype(str) if best.dtype == object else best}
    return found | {f"P({name}={level})": shares[:, k] for k, level in enumerate(known)}


def _of_numbers(law: Conditional, levels: Any) -> dict[str, Any]:
    name, quantiles = law.column.name, law.quantiles(levels)
    return {name: np.asarray(law.mean())} | _named(name, quantiles, levels)


def _named(name: str, quantiles: Any, levels: Any) -> dict[str, Any]:
    """Returns a column for each level of the quantiles."""
    return {f"{name} q{level:g}": quantiles[:, k] for k, level in enumerate(levels)}
