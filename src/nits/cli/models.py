"""Model files as the commands for tables and images want them."""

from __future__ import annotations

from typing import Any

from nits import persistence


def load(path: str) -> Any:
    """Reads a model; of a regressor or a classifier the density that it holds."""
    model = persistence.load(path)
    return getattr(model, "density_", model)


def refuse_images(model: Any, verb: str) -> None:
    """Refuses a model of images, for verbs that take tables only."""
    if not hasattr(model, "schema_"):
        raise ValueError(
            f"nits {verb} takes a model of a table, but this is a {type(model).__name__}; "
            "nits score and nits sample take both."
        )
