"""nits sample: draw new rows, batch by batch."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow

from nits.chunks import slices
from nits.cli import outputs
from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files
from nits.tables.questions import parser
from nits.tables.questions.conditions import Condition
from nits.tables.stream import parts

AT_ONCE = 65536
"""Rows that have a seed of their own."""


def run(args: argparse.Namespace) -> int:
    """Draws and writes in constant memory."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.sample(args, model)
    if args.grow:
        raise ValueError(f"--grow is for images, but {args.model} is a model of tables.")
    turns = _turns(args.rows, args.seed)
    if args.engine == "ray":
        _on_ray(args, turns)
        return 0
    with (
        _writer(args) as write,
        outputs.counter(args, args.rows) as counter,
    ):
        for count, state in turns:
            write(drawn(model, args, count, state))
            counter.add(count)
    return 0


def _turns(rows: int, seed: int | None) -> list[tuple[int, int]]:
    """Returns how many rows are drawn at a time, and with which seeds."""
    whole = np.random.SeedSequence(seed)
    return [
        (min(AT_ONCE, rows - start), int(whole.spawn(1)[0].generate_state(1)[0] % (2**31)))
        for start in range(0, rows, AT_ONCE)
    ]


def drawn(model: Any, args: argparse.Namespace, count: int, state: int) -> pyarrow.Table:
    """Returns some rows, of the seed `state`."""
    if given := conditions(args.given):
        return arrow(model._under(given, args.complete).sample(count, state))
    return arrow(model.sample(count, random_state=state, complete=args.complete))


def _on_ray(args: argparse.Namespace, turns: list[tuple[int, int]]) -> None:
    """Draws the files of a folder on a cluster."""
    from nits.cli import on_ray
    from nits.engines.on_ray import Ray

    if not parts.is_folder(args.output):
        raise ValueError(
            f"--engine ray needs a folder to write, but -o is {args.output}; "
            "end its name with a slash."
        )
    size = parts.ROWS // AT_ONCE
    files_ = [turns[some] for some in slices(len(turns), size)]
    with parts.written(args.output, args.partition_by) as folder:
        arguments = (args, files_, folder.folder.absolute())
        on_ray.each(Ray(args.workers), on_ray.Sampler, arguments, len(files_))


@contextmanager
def _writer(args: argparse.Namespace) -> Iterator[Callable[[pyarrow.Table], None]]:
    """Yields what writes rows: to one file, or to the files of a folder."""
    if parts.is_folder(args.output):
        with parts.written(args.output, args.partition_by) as folder:
            yield folder.add
        return
    if args.partition_by:
        raise ValueError(
            f"--partition-by needs a folder, but -o is {args.output}; end its name with a slash."
        )
    with files.written(args.output, safe=args.safe_csv) as writer:
        yield writer.write


def conditions(options: list[str]) -> list[tuple[str, Condition]]:
    """Returns what the options --given say."""
    return [pair for text in options for pair in parser.option(text)]


def arrow(table: Any) -> pyarrow.Table:
    """Returns a table of any library as one of Arrow."""
    if isinstance(table, pyarrow.Table):
        return table
    if isinstance(table, np.ndarray):
        return pyarrow.table({f"x{i}": column for i, column in enumerate(table.T)})
    if type(table).__module__.startswith("polars"):
        return table.to_arrow()
    return pyarrow.Table.from_pandas(table, preserve_index=False)
