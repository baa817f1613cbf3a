"""Where independent work runs: `Local` on the cores of this machine, `Ray` on those of a cluster.

An engine takes a function and tasks that do not depend on each other, runs them, shows one bar for
all, and returns the results in the order of the tasks, with the same bits wherever they ran.
`RayTrain` runs each task on several workers at once, which train one network together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nits.engines.engine import Engine
    from nits.engines.local import Local
    from nits.engines.on_ray import Ray
    from nits.engines.on_ray_train import RayTrain

__all__ = ["Engine", "Local", "Ray", "RayTrain"]

_PLACES = {"Engine": "engine", "Local": "local", "Ray": "on_ray", "RayTrain": "on_ray_train"}


def __getattr__(name: str) -> Any:
    """Imports an engine when it is first used."""
    if name in _PLACES:
        return getattr(import_module(f"nits.engines.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'nits.engines' has no attribute {name!r}")
