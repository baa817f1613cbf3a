"""The OpenMP library that torch has loaded, whose threads our own kernels share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch  # noqa: F401  (which loads it)


@cache
def path() -> str | None:
    """Returns the path of torch's GNU OpenMP library; None if there is none, as outside Linux."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    paths = sorted({line.split(maxsplit=5)[-1] for line in maps.splitlines() if "libgomp" in line})
    return next((found for found in paths if "torch" in found), paths[0] if paths else None)
