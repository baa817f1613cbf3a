"""nits outliers: how surprising each row of a table is, and which of its entries."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow

from nits.cli import outputs
from nits.cli.commands.score import arrow_types
from nits.cli.models import load, refuse_images
from nits.tables import files

NAMED = 3
"""Entries that are named for a row, the most surprising ones."""


def run(args: argparse.Namespace) -> int:
    """Reads, scores and writes batch by batch; with --top all but those rows are forgotten."""
    model = load(args.model)
    refuse_images(model, "outliers")
    rows, top = 0, None
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        outputs.counter(args, files.rows(args.table)) as counter,
    ):
        for table in files.batches(args.table, arrow_types(model)):
            with files.named(args.table):
                scored = _scored(model, table, rows, args.per_column)
            rows += len(table)
            counter.add(len(table))
            if args.top is None:
                writer.write(scored)
            else:
                joined = scored if top is None else pyarrow.concat_tables([top, scored])
                top = joined.sort_by([("outlier_score", "descending")]).slice(0, args.top)
        if not rows:
            raise ValueError(f"{args.table} must have at least one row to score, but has none.")
        if top is not None:
            writer.write(top)
    return 0


def _scored(model: Any, table: pyarrow.Table, first: int, per_column: bool) -> pyarrow.Table:
    """Returns the score of each row, numbered on from the first, and what is odd about it."""
    each = model.outlier_scores(table, per_column=True)
    names = model.schema_.names
    columns: dict[str, Any] = {
        "row": np.arange(first, first + len(each)),
        "outlier_score": each.sum(1),
        "most_surprising": [_named(row, names, table, k) for k, row in enumerate(each)],
    }
    if per_column:
        columns |= {f"surprise_{name}": each[:, i] for i, name in enumerate(names)}
    return pyarrow.table(columns)


def _named(surprises: Any, names: list[str], table: pyarrow.Table, row: int) -> str:
    """Returns the most surprising entries of a row, such as "age=130 (12.4), city=Rome (3.1)"."""
    found = []
    for i in np.argsort(-surprises, kind="stable")[:NAMED]:
        value = table.column(names[i])[row].as_py()
        shown = "missing" if value is None else value
        found.append(f"{names[i]}={shown} ({surprises[i]:.1f})")
    return ", ".join(found)
