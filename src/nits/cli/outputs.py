"""What the verbs write: never over what they read, and no model is lost if its file fails."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from nits.tables.stream import named
from nits.training.progress import Counter

STREAM = "-"


INPUTS = ("model", "table", "held_out", "checkpoint")
"""Arguments of verbs that name what is read."""


def refuse_inputs(args: argparse.Namespace) -> None:
    """Refuses a command that would replace a file that it reads, or its checkpoint."""
    output = getattr(args, "output", None)
    if output is None:
        return
    if output != STREAM:
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
    """Refuses to write to a file that is read, by whatever name, alone or as one of many.

    Standard input and output may be files, too.
    """
    written = _file(output, sys.stdout)
    if source is None or written is None:
        return
    for path in [source] if source == STREAM else named.local_files(source):
        read = _file(str(path), sys.stdin)
        if read is not None and os.path.samestat(written, read):
            one = "that of standard input" if source == STREAM else str(path)
            other = "standard output" if output == STREAM else output
            among = "" if str(path) == source else f", one of {source}"
            raise ValueError(
                f"-o must name another file than {one}{among}, which is read, but {other} "
                "is the same; it would be lost."
            )


def _file(name: str, stream: IO[str] | None) -> os.stat_result | None:
    """Returns what tells a file from others, also of a standard stream; None of what is no file."""
    try:
        if name != STREAM:
            found = os.stat(name)
        elif stream is not None:
            found = os.fstat(stream.fileno())
        else:
            return None
    except (OSError, ValueError):  # where a stream has no file
        return None
    return found if stat.S_ISREG(found.st_mode) else None


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
