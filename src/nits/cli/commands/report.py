"""nits report: how far a model can be trusted, as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nits.cli.commands.score import arrow_types
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.report import image_page, page
from nits.report.document import Options, Report, Source
from nits.tables import files


def run(args: argparse.Namespace) -> int:
    """Writes the report, whole or not at all."""
    output = Path(args.output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o must name an .html file, but is {args.output}.")
    model = load(args.model)
    options = Options(args.seed, args.rows, Path(args.model), args.quiet)
    if isinstance(model, NITSImages):
        if args.held_out:
            raise ValueError(
                "--held-out is for tables, but this is a model of images; leave it out."
            )
        found = image_page.of_images(model, args.table, options)
    else:
        found = _of_table(model, args, options)
    found.save(output)
    if not args.quiet:
        print(f"{args.output}: {len(found.html) / 1e6:.2f} MB", file=sys.stderr)
    return 0


def _of_table(model: Any, args: argparse.Namespace, options: Options) -> Report:
    types = arrow_types(model)
    every = [args.table, *([args.held_out] if args.held_out else [])]
    tables = [Source(files.read_table(path, types), Path(path)) for path in every]
    return page.of_table(model, tables[0], tables[1] if args.held_out else None, options)
