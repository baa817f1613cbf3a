"""nits score: the log-density of every row of a table, batch by batch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow

from nits.chunks import slices
from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files
from nits.tables.columns import Categories
from nits.tables.csv_columns import Wanted
from nits.training.progress import Counter

AT_ONCE = 16384


def run(args: argparse.Namespace) -> int:
    """Reads, scores and writes in constant memory."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.score(args, model)
    total = 0.0
    rows = 0
    outside = unseen = 0
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        Counter("rows", quiet=args.quiet, total=files.rows(args.table)) as counter,
    ):
        for table in _parts(args.table, model):
            with files.named(args.table):
                shares = model.score_samples(table, per_column=True) if args.per_column else None
                value = model.score_samples(table) if shares is None else shares.sum(1)
                unseen += int(model.unseen(table).any(1).sum())
            writer.write(_scores(value, shares, model.schema_.names))
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


def _parts(path: str, model: Any) -> Iterator[pyarrow.Table]:
    """Yields some rows at a time, so few that progress is seen."""
    for table in files.batches(path, arrow_types(model)):
        for rows in slices(table.num_rows, AT_ONCE):
            yield table.slice(rows.start, rows.stop - rows.start)


def arrow_types(model: Any) -> dict[str, Wanted]:
    """Returns how to read a file's columns, so that all batches have the same types.

    Of the columns that were set aside, only constants are looked at.
    """
    columns = (*model.schema_.columns, *model.context_schema_.columns)
    dtypes = {column.name: column.dtype for column in columns}
    words = {c.name: (*c.levels, *c.pooled) for c in columns if isinstance(c, Categories)}
    words |= {column.name: column.facts.levels or () for column in columns if column.facts.ordered}
    constants = model.idle_.constants()
    dtypes |= {name: model.idle_.columns[name][0].dtype for name in constants}
    words |= {name: (value,) for name, value in constants.items()}
    return files.types_of(dtypes, words, constants)


def _scores(value: Any, shares: Any, names: list[str]) -> pyarrow.Table:
    columns = {"log_density": np.asarray(value)}
    if shares is not None:
        columns |= {f"log_density_{name}": shares[:, i] for i, name in enumerate(names)}
    return pyarrow.table(columns)
