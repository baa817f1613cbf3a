"""nits score: the log-density of every row of a table, batch by batch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from nits.chunks import slices
from nits.cli import outputs
from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files
from nits.tables.columns import Categories
from nits.tables.csv_columns import Wanted
from nits.tables.lacking import sentence
from nits.tables.stream import named, parts

if TYPE_CHECKING:
    from nits.tables.stream.source import Source

AT_ONCE = 16384
"""Rows at a time, so few that progress is seen."""

Tables = Iterable[tuple[str, pyarrow.Table]]


def run(args: argparse.Namespace) -> int:
    """Reads, scores and writes in constant memory."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.score(args, model)
    found = Figures()
    if args.engine == "ray":
        _on_ray(args, model, found)
    else:
        _here(args, model, found)
    if not args.quiet:
        print(found.sentence(), file=sys.stderr)
    return 0


def _here(args: argparse.Namespace, model: Any, found: Figures) -> None:
    """Scores in this process."""
    with ExitStack() as stack:
        total, tables = _opened(args.table, model, stack)
        write = _writer(args, stack)
        counter = stack.enter_context(outputs.counter(args, total))
        for name, table in tables:
            for scores in written_scores(model, table, args, found):
                write(name, scores)
                counter.add(scores.num_rows)
        if not found.rows:
            raise ValueError(f"{args.table} must have at least one row to score, but has none.")


def _on_ray(args: argparse.Namespace, model: Any, found: Figures) -> None:
    """Scores the files of a folder on a cluster."""
    from nits.cli import on_ray
    from nits.engines.on_ray import Ray

    if not (named.is_source(args.table) and parts.is_folder(args.output)):
        raise ValueError(
            "--engine ray needs a folder of tables and a folder to write, but has "
            f"{args.table} and {args.output}; end the name of a folder with a slash."
        )
    with ExitStack() as stack:
        table, columns = _source(args.table, model, stack)
        folder = stack.enter_context(parts.written(args.output)).folder
        count = len(on_ray.files_of(table))
        arguments = (args, table, columns, folder.absolute())
        for one in on_ray.each(Ray(args.workers), on_ray.Scorer, arguments, count):
            found.merge(one)


def written_scores(
    model: Any, table: pyarrow.Table, args: argparse.Namespace, found: Figures
) -> Iterator[pyarrow.Table]:
    """Yields the scores of a table, some rows at a time, and counts them."""
    for rows in slices(table.num_rows, AT_ONCE):
        some = table.slice(rows.start, rows.stop - rows.start)
        with files.named(args.table):
            value, scores = scored(model, some, per_column=args.per_column)
            found.add(value, int(model.unseen(some).any(1).sum()))
        yield scores


class Figures:
    """What all scores come to."""

    def __init__(self) -> None:
        self.total = 0.0
        self.rows = self.outside = self.unseen = 0

    def add(self, value: Any, unseen: int) -> None:
        """Counts the scores of some rows."""
        inside = value[value != -math.inf]
        self.total += float(inside.sum())
        self.rows += len(value)
        self.outside += len(value) - len(inside)
        self.unseen += unseen

    def merge(self, other: Mapping[str, float]) -> None:
        """Adds the figures of other rows, by their names."""
        self.total += other["total"]
        self.rows += int(other["rows"])
        self.outside += int(other["outside"])
        self.unseen += int(other["unseen"])

    def sentence(self) -> str:
        """Returns the mean, and what is to be said of single rows."""
        mean = self.total / max(1, self.rows - self.outside)
        aside = f", {self.outside} rows outside the support" if self.outside else ""
        new = f", {self.unseen} rows with something never seen in training" if self.unseen else ""
        return f"{self.rows} rows, {mean:.4f} nats per row{aside}{new}"


def _opened(path: str, model: Any, stack: ExitStack) -> tuple[int | None, Tables]:
    """Returns how many rows there are, if that is known, and tables with the file of each."""
    types = arrow_types(model)
    if not named.is_source(path):
        return files.rows(path), (("", table) for table in files.batches(path, types))
    from nits.tables.stream.scan import ahead

    table, columns = _source(path, model, stack)
    pieces = range(len(table.sizes))
    return len(table), ahead(
        (table.file(piece), part) for piece in pieces for part in table.read(piece, columns)
    )


def _source(path: str, model: Any, stack: ExitStack) -> tuple[Source, list[str]]:
    """Returns a table of many files, and the columns to read."""
    from nits.tables.stream import source

    types = arrow_types(model)
    table = stack.enter_context(source.opened(path, types))
    names = table.schema.names
    if lacking := files.lacking(names, types):
        raise ValueError(f"{path}: {sentence(lacking, names)}")
    return table, [name for name in names if name in types]


def _writer(args: argparse.Namespace, stack: ExitStack) -> Callable[[str, pyarrow.Table], None]:
    """Returns what writes scores: to one file, or to a folder like that of the tables."""
    if parts.is_folder(args.output):
        return stack.enter_context(parts.written(args.output)).append
    writer = stack.enter_context(files.written(args.output, safe=args.safe_csv))
    return lambda _, table: writer.write(table)


def scored(model: Any, table: pyarrow.Table, *, per_column: bool) -> tuple[Any, pyarrow.Table]:
    """Returns the log-densities of rows, and the table of them to write."""
    shares = model.score_samples(table, per_column=True) if per_column else None
    value = model.score_samples(table) if shares is None else shares.sum(1)
    return value, _scores(value, shares, model.schema_.names)


def arrow_types(model: Any, *, given: bool = False) -> dict[str, Wanted]:
    """Returns how to read a file's columns, so that all batches have the same types.

    Of the columns that were set aside, only constants are looked at.

    given: Whether only those are wanted that the model conditions on.
    """
    modelled = () if given else model.schema_.columns
    columns = (*modelled, *model.context_schema_.columns)
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
