"""Data to learn from: real tables and images, and in `nits.datasets.toy` densities that are known exactly.

The toy densities are imported when they are first used.
"""

from importlib import import_module
from types import ModuleType

from nits.datasets.catalogue import load, names
from nits.datasets.continuous import table
from nits.datasets.household import power
from nits.datasets.patches import bsds300
from nits.datasets.published import gas, hepmass, miniboone
from nits.datasets.split import Split

__all__ = ["Split", "bsds300", "gas", "hepmass", "load", "miniboone", "names", "power", "table"]

_SUBMODULES = ("toy",)


def __getattr__(name: str) -> ModuleType:
    """Imports the submodule `name` on first use."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
