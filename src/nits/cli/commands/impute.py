"""nits impute: fill in the missing values of a table, batch by batch."""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow

from nits.cli import outputs
from nits.cli.commands.sample import arrow
from nits.cli.commands.score import arrow_types
from nits.images.estimator import NITSImages
from nits.persistence import load
from nits.tables import files


def run(args: argparse.Namespace) -> int:
    """Reads, fills in and writes in constant memory."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        raise ValueError("values are filled in by a table's model, but this is one of images.")
    seed = np.random.SeedSequence(args.seed)
    types = arrow_types(model)
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        outputs.counter(args, files.rows(args.table)) as counter,
    ):
        for table in files.batches(args.table, types, whole=True):
            state = int(seed.spawn(1)[0].generate_state(1)[0] % (2**31))
            with files.named(args.table):
                found = model.impute(_read(table, types), args.draws or args.by, state)
            for k, each in enumerate(found if args.draws else [found]):
                whole = _beside(table, arrow(each))
                if args.draws and args.draws > 1:
                    whole = whole.add_column(0, "draw", pyarrow.array(np.full(len(whole), k + 1)))
                writer.write(whole)
            counter.add(len(table))
    return 0


def _read(table: pyarrow.Table, types: files.Types) -> pyarrow.Table:
    """Returns the columns of a table that the model reads."""
    names = table.column_names
    return files.listing(table.select(files.known(names, types)), names, types)


def _beside(table: pyarrow.Table, filled: pyarrow.Table) -> pyarrow.Table:
    """Returns a table with filled columns in their place; what the model does not read stays."""
    read = {name: filled.column(name) for name in filled.column_names}
    return pyarrow.table({name: read.get(name, table.column(name)) for name in table.column_names})
