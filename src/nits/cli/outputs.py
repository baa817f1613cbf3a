"""What the verbs write: never over what they read, and no model is lost if its file fails."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from nits.tables.stream import named
from nits.training.progress import Counter

STREAM = "-"


INPUTS = ("model", "table", "held_out", "checkpoint")
"""Arguments of verbs that name what is read."""


def refuse_inputs(args: argparse.Namespace) -> None:
    """Refuses a command that would replace a file that it reads, or its checkpoint."""
    output = getattr(args, "output", None)
    if output is None or output == STREAM:
        return
    _refuse_checkpoint(output, getattr(args, "checkpoint", None))
    for name in INPUTS:
        refuse_same(output, getattr(args, name, None))


def _refuse_checkpoint(output: str, checkpoint: str | None) -> None:
    """Refuses one name for both, which need not be there yet."""
    if checkpoint is not None and os.path.realpath(output) == os.path.realpath(checkpoint):
        raise ValueError(
            f"-o must name another file than --checkpoint, but both are {output}; name another."
        )


def refuse_same(output: str, source: str | None) -> None:
    """Refuses to write to a file that is read, by whatever name, alone or as one of many."""
    if source is None or source == STREAM or not Path(output).is_file():
        return
    for path in named.local_files(source):
        with suppress(OSError):
            if os.path.samefile(output, path):
                among = "" if str(path) == source else f", one of {source}"
                raise ValueError(
                    f"-o must name another file than {path}{among}, which is read, but {output} "
                    "is the same; it would be lost."
                )


def counter(args: argparse.Namespace, total: int | None) -> Counter:
    """Returns the bar of rows; none where the rows themselves go to the terminal."""
    shown = args.output == STREAM and sys.stdout is not None and sys.stdout.isatty()
    return Counter("rows", quiet=args.quiet or shown, total=total)


def save(model: Any, output: Path) -> None:
    """Saves a model; if that fails, under another name, which the error tells."""
    try:
        model.save(output)
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        for folder in (Path.cwd(), Path(tempfile.gettempdir()), Path.home()):
            if place := _saved(model, folder, output.name):
                raise OSError(
                    f"{output} could not be written ({reason}); the model is in {place} instead."
                ) from None
        raise


def _saved(model: Any, folder: Path, name: str) -> Path | None:
    """Saves a model in a folder under a new name, if that is possible."""
    try:
        handle, place = tempfile.mkstemp(prefix="rescued-", suffix=f"-{name}", dir=folder)
        os.close(handle)
    except OSError:
        return None
    try:
        model.save(place)
    except OSError:
        os.unlink(place)
        return None
    return Path(place)
