"""nits fit: learn the density of a table, or of a folder of images, and write it to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nits import atomic
from nits.cli import outputs
from nits.cli.commands import images
from nits.printable import listed, printable


def run(args: argparse.Namespace) -> int:
    """Fits and saves; training that is interrupted keeps the best weights so far."""
    output = Path(args.output)
    atomic.try_out(output)
    _refuse_nothing_to_resume(args)
    if Path(args.table).is_dir():
        return images.fit(args)
    images.refuse_options(args)
    return _fit_table(args, output)


def _refuse_nothing_to_resume(args: argparse.Namespace) -> None:
    if args.resume and args.checkpoint is None:
        raise ValueError("--resume needs a checkpoint, but there is no --checkpoint; name it.")
    if args.resume and not Path(args.checkpoint).exists():
        raise ValueError(
            f"--resume needs a checkpoint, but there is no {args.checkpoint}; "
            "check the spelling, or leave out --resume."
        )


def _fit_table(args: argparse.Namespace, output: Path) -> int:
    from nits.tables import files, told
    from nits.tables.estimator import NITSDensity
    from nits.tables.orders import CALLED

    table = files.read_table(args.table)
    unknown = [name for name in args.drop if name not in table.column_names]
    if unknown:
        raise ValueError(
            f"there is no column {unknown[0]!r} among {listed(table.column_names)}; "
            "check the spelling."
        )
    table = table.drop_columns(args.drop)
    called = [name for name in CALLED if args.order == [name] and name not in table.column_names]
    estimator = NITSDensity(
        kinds=dict(args.kind) or None,
        support=dict(args.support) or None,
        pool_below=args.pool_below,
        context=args.context or None,
        order=called[0] if called else args.order,
        members=args.members,
        answers=args.answers,
        outliers=args.outliers,
        whiten=args.whiten,
        max_minutes=args.max_minutes,
        max_steps=args.max_steps,
        validation_fraction=args.validation_fraction,
        checkpoint=args.checkpoint,
        random_state=args.seed,
        verbose=not args.quiet,
    )
    with files.named(args.table):
        estimator.fit(table)
    outputs.save(estimator, output)
    if args.checkpoint is not None and _interrupted(estimator.history_):
        print("note: the same command goes on from its checkpoint.", file=sys.stderr)
    if not args.quiet:
        held_out, figure = estimator.held_out_, ""
        if held_out is not None:
            known = told.figure(held_out, estimator.held_out_error_)
            figure = f"; {known} nats per row on held-out rows"
        print("members, by weight:", *told.sorts(estimator.sorts_), sep="\n", file=sys.stderr)
        for line in told.curves(estimator.model_, estimator.schema_.names):
            print(line, file=sys.stderr)
        print(
            f"{printable(output)}: {len(estimator.schema_.columns)} columns{figure}",
            file=sys.stderr,
        )
    return 0


def _interrupted(history: dict[str, Any]) -> bool:
    return any(each["stopped"] == "interrupted" for each in (history, *history["others"]))
