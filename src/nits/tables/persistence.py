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
from nits import checks, typed
from nits.model import storage
from nits.model.calibrated import Calibrated
from nits.model.mixture import Mixture
from nits.model.reading import Reading
from nits.model.roles import Roles
from nits.model.tempered import Tempered
from nits.tables import guessing, networks, schema
from nits.tables.blurred import OutlierNetwork
from nits.tables.columns import Column
from nits.tables.estimator import NITSDensity
from nits.tables.guessing import Guessed
from nits.tables.idle import Idle
from nits.tables.preparing import READ_BY
from nits.tables.schema import Schema
from nits.tables.search import Trial
from nits.weights.allowance import Allowance, size

MEMBERS = 1000
"""The most that a file may have."""


def save(estimator: Any, path: str | Path) -> None:
    """Writes a fitted estimator, under a temporary name first."""
    storage.write(path, tensors(estimator), description(estimator))


def tensors(estimator: Any) -> dict[str, Tensor]:
    """Returns the weights, and the knots of what is read of the context."""
    found = {f"model.{name}": t.contiguous() for name, t in estimator.model_.state_dict().items()}
    if estimator.context_reading_ is not None:
        found["context.knots"] = estimator.context_reading_.knots.contiguous()
    if isinstance(estimator.context_reading_, Guessed):
        state = estimator.context_reading_.trees.state_dict()
        found |= {f"trees.{name}": t.contiguous() for name, t in state.items()}
    if estimator.companion_ is not None:
        state = estimator.companion_.state_dict()
        found |= {f"companion.{name}": t.contiguous() for name, t in state.items()}
    if estimator.outliers_ is not None:
        state = estimator.outliers_.density.state_dict()
        found |= {f"outliers.{name}": t.contiguous() for name, t in state.items()}
    return found


def description(estimator: Any) -> dict[str, Any]:
    """Returns what a file holds besides tensors: parameters, schema, sizes, training history."""
    model, companion = estimator.model_, estimator.companion_
    inner = model.density if isinstance(model, Calibrated) else model
    parts = inner.members if isinstance(inner, Mixture) else [inner]
    pairs = zip(parts, estimator.members_, strict=True)
    return {
        "nits": nits.__version__,
        "parameters": _by_name(estimator),
        "schema": estimator.schema_.to_dict(),
        "context": estimator.context_schema_.to_dict(),
        "idle": estimator.idle_.to_dict(),
        "names": estimator.names_,
        "features": features(estimator),
        "model": {
            "order": list(estimator.order_ or parts[0].order.tolist()),
            "knots": [head.knots for head in estimator.sketch_.given],
            "members": [networks.described(*pair) for pair in pairs],
            "tempered": isinstance(inner, Tempered),
            "calibrated": isinstance(model, Calibrated),
        },
        "trees": _trees(estimator.context_reading_),
        "companion": None if companion is None else companion.description(),
        "outliers": None if estimator.outliers_ is None else estimator.outliers_.description(),
        "sorts": estimator.sorts_,
        "orders": [trial._asdict() for trial in estimator.order_trials_],
        "training": estimator.history_,
        "held_out": estimator.held_out_,
        "held_out_error": estimator.held_out_error_,
    }


def _trees(reading: Reading | Guessed | None) -> dict[str, int] | None:
    return reading.trees.description() if isinstance(reading, Guessed) else None


def _by_name(estimator: Any) -> dict[str, Any]:
    """Returns the parameters that JSON can hold; columns in them by name."""
    found = dict(estimator.get_params())
    del found["checkpoint"], found["engine"]  # of the machine that trained
    for key in ("kinds", "support"):
        if isinstance(found[key], Mapping):
            found[key] = schema.by_name(found[key], [*estimator.columns_])
    return _held(found)


def parameters(estimator: Any) -> dict[str, Any]:
    """Returns the parameters that JSON can hold."""
    return _held(estimator.get_params())


def _held(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if _is_json(value)}


def features(estimator: Any) -> dict[str, Any]:
    """Returns what scikit-learn remembers of the columns."""
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
    _refuse_malformed(estimator)
    estimator.sorts_ = about.get("sorts", [])
    estimator.order_trials_ = [Trial(**trial) for trial in about.get("orders", [])]
    estimator.history_ = about["training"]
    estimator.held_out_ = about["held_out"]
    estimator.held_out_error_ = about.get("held_out_error")
    restore_features(estimator, about["features"])
    _restore_model(estimator, tensors, about["model"], about.get("trees"))
    estimator.companion_ = _companion(_under("companion.", tensors), about.get("companion"))
    estimator.outliers_ = _outliers(
        _under("outliers.", tensors), about.get("outliers"), estimator.schema_
    )
    return estimator


def restore_features(estimator: Any, about: dict[str, Any]) -> None:
    """Sets what scikit-learn remembers of the columns: undoes `features`."""
    estimator.n_features_in_ = about["count"]
    if about["names"] is not None:
        estimator.feature_names_in_ = np.array(about["names"], dtype=object)


def _refuse_malformed(estimator: Any) -> None:
    """Refuses columns with parts of other types than theirs, and other names than theirs."""
    schemas = estimator.schema_, estimator.context_schema_
    for column in (*schemas[0].columns, *schemas[1].columns):
        typed.check(column, "column")
        for part in (column, getattr(column, "ruler", None)):
            grid = getattr(part, "grid", None)
            if grid is not None and not (int(grid.step) if grid.exact else grid.step):
                raise ValueError("a grid has no step")
    for facts, _, why in estimator.idle_.columns.values():
        typed.check(facts, "column")
        typed.check(why, "column")
    known = [*schemas[0].names, *estimator.idle_.columns]
    if len(set(known)) < len(known) or not set(schemas[0].names) <= set(estimator.names_) <= set(
        known
    ):
        raise ValueError("the names of its columns are not those of its schema")


def _restore_model(
    estimator: Any, tensors: dict[str, Tensor], shape: dict[str, Any], trees: dict[str, Any] | None
) -> None:
    allowance = storage.allowance(tensors)
    columns = estimator.context_schema_.columns
    same = isinstance(shape["knots"], int)  # before version 0.3
    knots = [shape["knots"]] * len(columns) if same else shape["knots"]
    for count in knots:
        size(count, "knots", allowance.numbers)
    estimator.context_reading_ = _reading(columns, knots, tensors, trees, allowance)
    estimator.orders_ = [list(checks.order(shape["order"], len(estimator.schema_.columns)))]
    sketch = estimator.sketch_
    members = _alike(shape, sketch.context) if same else shape["members"]
    parts = [networks.rebuilt(sketch, about, allowance) for about in members]
    estimator.members_ = [
        {name: value for name, value in about.items() if name != "weights"} for about in members
    ]
    mixture = Tempered if shape.get("tempered") else Mixture
    density = mixture(parts) if len(parts) > 1 else parts[0]
    estimator.model_ = Calibrated(density) if shape.get("calibrated") else density
    storage.fill(estimator.model_, _under("model.", tensors))
    estimator.model_.eval()


def _reading(
    columns: Sequence[Column],
    knots: Sequence[int],
    tensors: dict[str, Tensor],
    trees: dict[str, Any] | None,
    allowance: Allowance,
) -> Reading | Guessed | None:
    """Returns what networks read of the columns that are given, if there are any."""
    own = [] if trees is None else list(knots[len(columns) :])
    pairs = zip(columns, knots[: len(knots) - len(own)], strict=True)
    found = Reading([column.head(READ_BY, count) for column, count in pairs]) if columns else None
    if found is None or "context.knots" not in tensors:
        return found
    parts = tensors["context.knots"].split([sum(knots) - sum(own), sum(own)])
    found.knots.copy_(parts[0])
    if trees is None:
        return found
    guessed = guessing.rebuilt(found, trees, own, allowance)
    guessed.guesses.knots.copy_(parts[1])
    storage.fill(guessed.trees, _under("trees.", tensors))
    guessed.trees.refuse_malformed(len(guessed.straight))
    return guessed


def _companion(tensors: dict[str, Tensor], about: dict[str, Any] | None) -> Roles | None:
    """Returns the network for questions of any columns, if the file has one."""
    if about is None:
        return None
    found = Roles.described(about, storage.allowance(tensors))
    storage.fill(found, tensors)
    return found.eval()


def _outliers(
    tensors: dict[str, Tensor], about: dict[str, Any] | None, schema: Schema
) -> OutlierNetwork | None:
    """Returns the network of outlier scores, if the file has one."""
    if about is None:
        return None
    found = OutlierNetwork.described(about, schema.columns, storage.allowance(tensors))
    storage.fill(found.density, tensors)
    found.density.eval()
    return found


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names start with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _alike(shape: dict[str, Any], context: int) -> list[dict[str, Any]]:
    """Returns the members of a file before version 0.3, which were networks of one style."""
    count = size(shape.get("members", 1), "members", MEMBERS, least=1)
    sizes = {name: shape[name] for name in ("hidden", "blocks", "dropout")}
    weights = {"kind": "masked_mlp", "context": context, "activation": "relu", **sizes}
    about = {
        "sort": "networks",
        "weight": 1 / count,
        "pnn": shape["pnn"],
        "knots": shape["knots"],
        "whiten": bool(shape.get("whiten")),
        "weights": weights,
    }
    return [about] * count


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high
