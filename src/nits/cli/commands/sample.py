"""nits sample: draw new rows, batch by batch."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow

from nits.cli import outputs
from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files
from nits.training.progress import Counter

AT_ONCE = 65536
"""Rows that have a seed of their own."""


def run(args: argparse.Namespace) -> int:
    """Draws and writes in constant memory."""
    outputs.refuse_same(args.output, args.model)
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.sample(args, model)
    seed = np.random.SeedSequence(args.seed)
    given = _given(model, args.given)
    with (
        files.written(args.output) as writer,
        Counter("rows", quiet=args.quiet, total=args.rows) as counter,
    ):
        for start in range(0, args.rows, AT_ONCE):
            count = min(AT_ONCE, args.rows - start)
            state = int(seed.spawn(1)[0].generate_state(1)[0] % (2**31))
            table = model.sample(count, random_state=state, given=given, complete=args.complete)
            writer.write(files.guarded(_arrow(table), args.output, safe=args.safe_csv))
            counter.add(count)
    return 0


def _given(model: Any, pairs: list[tuple[str, str]]) -> Any:
    """Returns the given values, as numbers for columns that hold numbers."""
    if not pairs:
        return None
    schema = model.context_schema_ if model.context_schema_.columns else model.schema_
    found = {}
    for name, text in pairs:
        if name not in schema.names:
            raise ValueError(
                f"there is no column {name!r} among {', '.join(schema.names)}; check the spelling."
            )
        column = schema.columns[schema.names.index(name)]
        found[name] = _value(column, text)
    return (
        {name: [value] for name, value in found.items()} if model.context_schema_.columns else found
    )


def _value(column: Any, text: str) -> Any:
    """Returns the value that a text spells in a column."""
    if getattr(column, "unit", None) is not None:
        return np.datetime64(text)
    if column.facts.ordered:
        return text
    if column.kind != "categorical":
        return float(text)
    by_name = {str(level): level for level in column.levels}
    if text not in by_name:
        raise ValueError(
            f"{column.name!r} must be one of its categories, {', '.join(by_name)}, but is {text!r}."
        )
    return by_name[text]


def _arrow(table: Any) -> pyarrow.Table:
    if isinstance(table, pyarrow.Table):
        return table
    if isinstance(table, np.ndarray):
        return pyarrow.table({f"x{i}": column for i, column in enumerate(table.T)})
    if type(table).__module__.startswith("polars"):
        return table.to_arrow()
    return pyarrow.Table.from_pandas(table, preserve_index=False)
