"""The cache folder of nits: prepared data sets and built kernels."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root(cache: Path | None = None) -> Path:
    """Returns `cache` if given, else the folder that NITS_CACHE names, else ~/.cache/nits."""
    return Path(cache or os.environ.get("NITS_CACHE") or Path("~") / ".cache" / "nits").expanduser()
