"""A fitted `NITSDensity` as one file, in the layout of `nits.model.storage`.

The file has weights and quantiles of columns, but no training row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import nits
from nits.heads import Head
from nits.model import storage
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.mixture import Mixture
from nits.model.reading import Reading
from nits.model.whitened import Whitened
from nits.tables import schema
from nits.tables.estimator import NITSDensity
from nits.tables.idle import Idle
from nits.tables.schema import Schema


def save(estimator: Any, path: str | Path) -> None:
    """Writes a fitted estimator, under a temporary name first."""
    tensors = {f"model.{name}": t.contiguous() for name, t in estimator.model_.state_dict().items()}
    if estimator.context_reading_ is not None:
        tensors["context.knots"] = estimator.context_reading_.knots.contiguous()
    storage.write(path, tensors, description(estimator))


def description(estimator: Any) -> dict[str, Any]:
    """Returns what a file holds besides tensors: parameters, schema, sizes, training history."""
    model = estimator.model_
    first = model.members[0] if isinstance(model, Mixture) else model
    density: Any = first.density if isinstance(first, Whitened) else first
    weights = density.weights
    return {
        "nits": nits.__version__,
        "parameters": _parameters(estimator),
        "schema": estimator.schema_.to_dict(),
        "context": estimator.context_schema_.to_dict(),
        "idle": estimator.idle_.to_dict(),
        "names": estimator.names_,
        "features": _features(estimator),
        "model": {
            "hidden": len(weights.ranks),
            "blocks": len(weights.inner) // 2,
            "dropout": weights.dropout,
            "codes": weights.sizes()["codes"],
            "order": model.order.tolist(),
            "pnn": list(estimator.pnn),
            "whiten": isinstance(first, Whitened),
            "members": len(model.members) if isinstance(model, Mixture) else 1,
            "knots": estimator.knots_,
        },
        "training": estimator.history_,
        "held_out": estimator.held_out_,
    }


def _parameters(estimator: Any) -> dict[str, Any]:
    """Returns the parameters that JSON can hold; columns in them by name."""
    found = dict(estimator.get_params())
    for key in ("kinds", "support"):
        if isinstance(found[key], Mapping):
            found[key] = schema.by_name(found[key], [*estimator.columns_])
    return {name: value for name, value in found.items() if _is_json(value)}


def _features(estimator: Any) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {"count": int(estimator.n_features_in_), "names": None if names is None else list(names)}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> NITSDensity:
    """Returns the estimator that a file describes."""
    parameters = {name: storage.tuples(value) for name, value in about["parameters"].items()}
    if parameters["support"] is not None:
        parameters["support"] = {name: _ends(*ends) for name, ends in parameters["support"].items()}
    estimator = NITSDensity(**parameters)
    estimator.schema_ = Schema.from_dict(about["schema"])
    estimator.context_schema_ = Schema.from_dict(about["context"])
    estimator.idle_ = Idle.from_dict(about.get("idle", []))
    estimator.names_ = about.get("names", estimator.schema_.names)
    estimator.knots_ = about["model"]["knots"]
    estimator.history_ = about["training"]
    estimator.held_out_ = about["held_out"]
    estimator.n_features_in_ = about["features"]["count"]
    if about["features"]["names"] is not None:
        estimator.feature_names_in_ = np.array(about["features"]["names"], dtype=object)
    _restore_model(estimator, tensors, about["model"])
    return estimator


def _restore_model(estimator: Any, tensors: dict[str, Tensor], shape: dict[str, Any]) -> None:
    pnn = tuple(shape["pnn"])
    knots = shape["knots"]
    read = [column.head(pnn, knots) for column in estimator.context_schema_.columns]
    estimator.context_reading_ = Reading(read) if read else None
    if estimator.context_reading_ is not None and "context.knots" in tensors:
        estimator.context_reading_.knots.copy_(tensors["context.knots"])
    densities = [_density(estimator, shape, read) for _ in range(shape.get("members", 1))]
    estimator.order_ = shape["order"]
    estimator.model_ = Mixture(densities) if len(densities) > 1 else densities[0]
    state = {
        name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")
    }
    estimator.model_.load_state_dict(state)
    estimator.model_.eval()


def _density(estimator: Any, shape: dict[str, Any], read: Sequence[Head]) -> Density:
    """Returns one network with initial weights."""
    pnn = tuple(shape["pnn"])
    knots = shape["knots"]
    density = NITS.mlp(
        [column.head(pnn, knots) for column in estimator.schema_.columns],
        hidden=shape["hidden"],
        blocks=shape["blocks"],
        dropout=shape["dropout"],
        codes=shape.get("codes"),
        context=sum(head.inputs for head in read),
        order=shape["order"],
        generator=0,
    )
    return Whitened(density) if shape.get("whiten") else density


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high
