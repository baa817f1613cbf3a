"""nits explore: a page on which a model's columns are conditioned by hand, on this machine only."""

from __future__ import annotations

import argparse
from pathlib import Path

from nits.cli.commands.score import arrow_types
from nits.cli.models import load
from nits.tables import files


def run(args: argparse.Namespace) -> int:
    """Serves until it is interrupted, which is how it ends."""
    try:
        from nits.explore.image_session import ImageSession
        from nits.explore.server import serve
        from nits.explore.session import Session
    except ModuleNotFoundError as error:
        raise ImportError(
            f"nits explore needs {error.name}, which is not installed; pip install 'nits[web]'."
        ) from None
    model, title = load(args.model), Path(args.model).stem
    session: Session | ImageSession
    if hasattr(model, "schema_"):
        table = None if args.table is None else files.read_table(args.table, arrow_types(model))
        session = Session(model, table, title=title)
    else:
        session = ImageSession(model, args.table, title=title)
    serve(session, port=args.port, browser=args.browser)
    return 0
