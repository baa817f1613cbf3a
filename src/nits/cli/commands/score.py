"""nits score: the log-density of every row of a table, batch by batch."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np
import pyarrow

from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files
from nits.training.progress import Counter


def run(args: argparse.Namespace) -> int:
    """Reads, scores and writes in constant memory."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.score(args, model)
    types = arrow_types(model)
    total = 0.0
    rows = 0
    outside = unseen = 0
    with files.written(args.output) as writer, Counter("rows", quiet=args.quiet) as counter:
        for table in files.batches(args.table, types):
            shares = model.score_samples(table, per_column=True)
            unseen += int(model.unseen(table).any(1).sum())
            value = shares.sum(1)
            writer.write(_scores(value, shares if args.per_column else None, model.schema_.names))
            inside = value[value != -math.inf]
            total += inside.sum()
            rows += len(value)
            outside += len(value) - len(inside)
            counter.add(len(value))
        if not rows:
            raise ValueError(f"{args.table} must have at least one row to score, but has none.")
    if not args.quiet:
        mean = total / max(1, rows - outside)
        aside = f", {outside} rows outside the support" if outside else ""
        new = f", {unseen} rows with something never seen in training" if unseen else ""
        print(f"{rows} rows, {mean:.4f} nats per row{aside}{new}", file=sys.stderr)
    return 0


def arrow_types(model: Any) -> dict[str, pyarrow.DataType]:
    """Returns the types to read a file's columns in, so that all batches have the same ones."""
    columns = (*model.schema_.columns, *model.context_schema_.columns)
    dtypes = {column.name: column.dtype for column in columns}
    dtypes |= {name: facts.dtype for name, (facts, *_) in model.idle_.columns.items()}
    return files.types_of(dtypes)


def _scores(value: Any, shares: Any, names: list[str]) -> pyarrow.Table:
    columns = {"log_density": np.asarray(value)}
    if shares is not None:
        columns |= {f"log_density_{name}": shares[:, i] for i, name in enumerate(names)}
    return pyarrow.table(columns)
