"""What the verbs write: never over what they read, and no model is lost if its file fails."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

STREAM = "-"


INPUTS = ("model", "table", "held_out", "checkpoint")
"""Arguments of verbs that name what is read."""


def refuse_inputs(args: argparse.Namespace) -> None:
    """Refuses a command that would replace a file that it reads."""
    output = getattr(args, "output", None)
    if output is not None:
        for name in INPUTS:
            refuse_same(output, getattr(args, name, None))


def refuse_same(output: str | Path, source: str | Path | None) -> None:
    """Refuses to write to the file that is read, by whatever name."""
    if source is None or STREAM in (str(output), str(source)):
        return
    try:
        same = os.path.samefile(output, source)
    except OSError:
        return
    if same and Path(source).is_file():
        raise ValueError(
            f"-o must name another file than {source}, which is read, but {output} is the same; "
            "it would be lost."
        )


def save(model: Any, output: Path) -> None:
    """Saves a model; if that fails, under another name, which the error tells."""
    try:
        model.save(output)
    except OSError as error:
        reason = error.strerror or str(error)
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
