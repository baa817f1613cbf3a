"""nits fit: learn the density of a table, of many files, or of images, and write it to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nits import atomic
from nits.cli import engines, outputs
from nits.cli.commands import images
from nits.printable import listed, printable
from nits.tables.stream import named
from nits.training import ranks

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


def run(args: argparse.Namespace) -> int:
    """Fits and saves; training that is interrupted keeps the best weights so far."""
    with ranks.joined() as group:
        return _run(args, group)


def _run(args: argparse.Namespace, group: ranks.Ranks) -> int:
    args.quiet = args.quiet or group.rank > 0
    output = Path(args.output)
    atomic.try_out(output)
    _refuse_nothing_to_resume(args)
    if Path(args.table).is_dir() and not named.is_of_tables(Path(args.table)):
        _refuse_several(args, group)
        return images.fit(args)
    images.refuse_options(args)
    estimator = _fitted(args)
    if group.rank == 0:
        _keep(args, estimator, output)
    return 0


def _refuse_several(args: argparse.Namespace, group: ranks.Ranks) -> None:
    if not group.alone:
        raise ValueError(
            f"models of images must be fitted by one process, but torchrun started {group.size} "
            f"for {args.table}; leave torchrun out."
        )


def _refuse_nothing_to_resume(args: argparse.Namespace) -> None:
    if args.resume and args.checkpoint is None:
        raise ValueError("--resume needs a checkpoint, but there is no --checkpoint; name it.")
    if args.resume and not Path(args.checkpoint).exists():
        raise ValueError(
            f"--resume needs a checkpoint, but there is no {args.checkpoint}; "
            "check the spelling, or leave out --resume."
        )


def _fitted(args: argparse.Namespace) -> NITSDensity:
    """Fits a table."""
    from nits.tables import files

    if named.is_source(args.table):
        return _fit_source(args)
    table = files.read_table(args.table)
    _refuse_unknown(args.drop, table.column_names)
    table = table.drop_columns(args.drop)
    estimator = _estimator(args, table.column_names)
    with files.named(args.table):
        estimator.fit(table)
    return estimator


def _keep(args: argparse.Namespace, estimator: NITSDensity, output: Path) -> None:
    """Saves a model, and says what was learned."""
    outputs.save(estimator, output)
    if args.checkpoint is not None and _interrupted(estimator.history_):
        print("note: the same command goes on from its checkpoint.", file=sys.stderr)
    if not args.quiet:
        _tell(estimator, output)


def _fit_source(args: argparse.Namespace) -> NITSDensity:
    """Fits a table of many files."""
    from nits.tables import files
    from nits.tables.stream import fitting, source

    with source.opened(args.table) as table:
        _refuse_unknown(args.drop, table.schema.names)
        estimator = _estimator(args, table.schema.names)
        with files.named(args.table):
            fitting.fit(estimator, table.without(args.drop), None)
    return estimator


def _refuse_unknown(names: list[str], columns: list[str]) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise ValueError(
            f"there is no column {unknown[0]!r} among {listed(columns)}; check the spelling."
        )


def _estimator(args: argparse.Namespace, columns: list[str]) -> NITSDensity:
    from nits.tables.estimator import NITSDensity
    from nits.tables.orders import CALLED

    called = [name for name in CALLED if args.order == [name] and name not in columns]
    return NITSDensity(
        kinds=dict(args.kind) or None,
        support=dict(args.support) or None,
        pool_below=args.pool_below,
        context=args.context or None,
        order=called[0] if called else args.order,
        members=args.members,
        answers=args.answers,
        outliers=args.outliers,
        trees=args.trees,
        mixing=args.mixing,
        whiten=args.whiten,
        max_minutes=args.max_minutes,
        max_steps=args.max_steps,
        validation_fraction=args.validation_fraction,
        checkpoint=args.checkpoint,
        engine=engines.chosen(args),
        random_state=args.seed,
        verbose=not args.quiet,
    )


def _tell(estimator: NITSDensity, output: Path) -> None:
    """Says what was learned."""
    from nits.tables import told

    held_out, figure = estimator.held_out_, ""
    if held_out is not None:
        known = told.figure(held_out, estimator.held_out_error_)
        figure = f"; {known} nats per row on held-out rows"
    print("members, by weight:", *told.sorts(estimator.sorts_), sep="\n", file=sys.stderr)
    for line in told.curves(estimator.model_, estimator.schema_.names):
        print(line, file=sys.stderr)
    print(f"{printable(output)}: {len(estimator.schema_.columns)} columns{figure}", file=sys.stderr)


def _interrupted(history: dict[str, Any]) -> bool:
    return any(each["stopped"] == "interrupted" for each in (history, *history["others"]))
