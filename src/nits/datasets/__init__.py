"""Data to learn from: real tables and images, and densities that are known exactly.

Each data set is prepared by its published protocol, once, and memory-mapped from then on. The known
densities are in `nits.datasets.toy`, which is imported when it is first used. Imports nothing of
nits but `nits.places`; benchmarks, examples and `nits.images` use it.
"""

from importlib import import_module
from types import ModuleType

from nits.datasets.catalogue import load, names
from nits.datasets.cifar import cifar10
from nits.datasets.continuous import table
from nits.datasets.household import power
from nits.datasets.idx import fashion_mnist, mnist
from nits.datasets.images import Images, image_folder
from nits.datasets.patches import bsds300
from nits.datasets.published import gas, hepmass, miniboone
from nits.datasets.split import Split

__all__ = [
    "Images",
    "Split",
    "bsds300",
    "cifar10",
    "fashion_mnist",
    "gas",
    "hepmass",
    "image_folder",
    "load",
    "miniboone",
    "mnist",
    "names",
    "power",
    "table",
]

_SUBMODULES = ("toy",)


def __getattr__(name: str) -> ModuleType:
    """Imports the submodule `name` on first use."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
