"""Every data set by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Protocol

from nits.datasets.continuous import TABLES, table
from nits.datasets.household import power
from nits.datasets.patches import bsds300
from nits.datasets.published import gas, hepmass, miniboone
from nits.datasets.split import Split


class Loader(Protocol):
    """A function that returns a data set."""

    def __call__(self, root: Path | None = None, *, cache: Path | None = None) -> Split:
        """Returns the data set, from the cache or else from the files under `root`."""


LOADERS: dict[str, Loader] = {
    "power": power,
    "gas": gas,
    "hepmass": hepmass,
    "miniboone": miniboone,
    "bsds300": bsds300,
    **{name: partial(table, name) for name in TABLES},
}


def names() -> tuple[str, ...]:
    """Returns the names that `load` knows.

    >>> import nits
    >>> "power" in nits.datasets.names()
    True
    """
    return tuple(LOADERS)


def load(name: str, root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns the data set called `name`.

    root: Folder with the published files; by default the environment variable NITS_DATA.
    cache: Folder for the prepared files; by default NITS_CACHE, or ~/.cache/nits.
    """
    if name not in LOADERS:
        raise ValueError(f"There is no data set {name!r}; the known ones are {', '.join(LOADERS)}.")
    return LOADERS[name](root, cache=cache)
