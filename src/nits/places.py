"""The cache folder of nits: prepared data sets and built kernels; and that of torch."""

from __future__ import annotations

import getpass
import os
import tempfile
from functools import cache as once
from pathlib import Path

TORCH = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable that names the folder of torch's caches."""


def cache_root(cache: Path | None = None) -> Path:
    """Returns `cache` if given, else the folder that NITS_CACHE names, else ~/.cache/nits."""
    return Path(cache or os.environ.get("NITS_CACHE") or Path("~") / ".cache" / "nits").expanduser()


@once
def ready_for_torch() -> None:
    """Names another folder for torch's caches if its own cannot be made.

    torch makes it, among the temporary files, as soon as it makes an optimizer, though nothing is
    compiled. If temporary files cannot be written, that should not end a fit.
    """
    if TORCH in os.environ:
        return
    try:
        _torch_folder().mkdir(parents=True, exist_ok=True)
    except OSError:
        os.environ[TORCH] = str(cache_root() / "torch")


def _torch_folder() -> Path:
    """Returns the folder that torch takes if none is named."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such user in a container; torch has its own name for it
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir()) / f"torchinductor_{user}"
