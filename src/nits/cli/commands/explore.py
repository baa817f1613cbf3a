"""nits explore: a page on which a model's columns are conditioned by hand, on this machine only."""

from __future__ import annotations

import argparse
from pathlib import Path

from nits.cli.commands.score import arrow_types
from nits.cli.models import load, refuse_images
from nits.tables import files


def run(args: argparse.Namespace) -> int:
    """Serves until it is interrupted, which is how it ends."""
    try:
        from nits.explore.server import serve
        from nits.explore.session import Session
    except ModuleNotFoundError as error:
        raise ImportError(
            f"nits explore needs {error.name}, which is not installed; pip install 'nits[web]'."
        ) from None
    model = load(args.model)
    refuse_images(model, "explore")
    table = None
    if args.table is not None:
        table = files.read_table(args.table, arrow_types(model))
    session = Session(model, table, title=Path(args.model).stem)
    serve(session, port=args.port, browser=args.browser)
    return 0
