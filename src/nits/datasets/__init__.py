"""Data to learn from: `nits.datasets.toy` has densities whose exact logarithm is known.

Submodules are imported when they are first used.
"""

from importlib import import_module
from types import ModuleType

_SUBMODULES = ("toy",)


def __getattr__(name: str) -> ModuleType:
    """Imports the submodule `name` on first use."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
