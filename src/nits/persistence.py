"""One file per model: tensors and a description of everything around them, in the safetensors format.

Loading executes nothing. The file holds weights, quantiles and category names, and no training row. A
checksum over all of it is kept, so that a damaged file is never taken for a model.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

import nits
from nits import atomic
from nits.model import NITS
from nits.reading import Reading
from nits.schema import Schema
from nits.whitened import Whitened

FORMAT = 1
"""Version of the layout: a file of a later one is refused."""


def save(estimator: Any, path: str | Path) -> None:
    """Writes a fitted estimator, under a temporary name first."""
    tensors = {f"model.{name}": t.contiguous() for name, t in estimator.model_.state_dict().items()}
    if estimator.context_reading_ is not None:
        tensors["context.knots"] = estimator.context_reading_.knots.contiguous()
    write(path, tensors, description(estimator))


def write(path: str | Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """Writes tensors and what is said of them."""
    about = json.dumps(_finite(description), sort_keys=True, allow_nan=False)
    metadata = {
        "format": "nits",
        "version": str(FORMAT),
        "about": about,
        "sha256": digest(tensors, about),
    }
    atomic.write(Path(path), to_bytes(tensors, metadata))


def description(estimator: Any) -> dict[str, Any]:
    """Returns all that a file says besides tensors: parameters, schema, sizes, and how training went."""
    model, history = estimator.model_, estimator.history_
    return {
        "nits": nits.__version__,
        "parameters": {name: value for name, value in estimator.get_params().items() if _is_json(value)},
        "schema": estimator.schema_.to_dict(),
        "context": estimator.context_schema_.to_dict(),
        "features": _features(estimator),
        "model": {
            "hidden": len(model.weights.ranks),
            "blocks": len(model.weights.inner) // 2,
            "dropout": model.weights.dropout,
            "order": model.order.tolist(),
            "pnn": list(estimator.pnn),
            "whiten": isinstance(model, Whitened),
            "knots": estimator.knots_,
        },
        "training": history,
        "held_out": estimator.held_out_,
    }


def _finite(value: Any) -> Any:
    """Returns the value with null for numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _features(estimator: Any) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {"count": int(estimator.n_features_in_), "names": None if names is None else list(names)}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def digest(tensors: dict[str, Tensor], about: str) -> str:
    """Returns the SHA-256 of all names, shapes, numbers and words."""
    found = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        t = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        found.update(t.numpy().tobytes())
    return found.hexdigest()


def load(path: str | Path) -> Any:
    """Reads a model that `save` wrote; executes nothing."""
    path = Path(path)
    tensors, about = _read(path)
    try:
        return _restored(tensors, about)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise ValueError(
            f"{path.name} does not describe a model that this version can build: {error}"
        ) from None


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    data = path.read_bytes()
    try:
        tensors = from_bytes(data)
        metadata = _metadata(data)
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise ValueError(
            f"{path.name} is not a model file of nits, or it is damaged ({str(error).splitlines()[0][:80]}); "
            "save the model again."
        ) from None
    if metadata.get("format") != "nits" or not metadata.get("version", "").isdigit():
        raise ValueError(f"{path.name} is a safetensors file, but not one of nits; it holds no density.")
    if int(metadata["version"]) > FORMAT:
        raise ValueError(
            f"{path.name} has format {metadata['version']}, but this version of nits reads up to {FORMAT}; "
            "install a newer nits."
        )
    about = metadata.get("about", "")
    if metadata.get("sha256") != digest(tensors, about):
        raise ValueError(
            f"{path.name} is damaged: its checksum does not fit; copy it again from where it came."
        )
    return tensors, json.loads(about)


def _metadata(data: bytes) -> dict[str, str]:
    """Returns the words in the header: eight bytes of length, then JSON."""
    length = int.from_bytes(data[:8], "little")
    found = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    if not isinstance(found, dict):
        raise ValueError("no description")
    return found


def _restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Any:
    if about.get("kind") == "images":
        from nits import image_persistence

        return image_persistence.restored(tensors, about)
    return _restored_table(tensors, about)


def _restored_table(tensors: dict[str, Tensor], about: dict[str, Any]) -> Any:
    from nits.estimator import NITSDensity

    parameters = {name: tuples(value) for name, value in about["parameters"].items()}
    if parameters["support"] is not None:
        parameters["support"] = {name: _ends(*ends) for name, ends in parameters["support"].items()}
    estimator = NITSDensity(**parameters)
    estimator.schema_ = Schema.from_dict(about["schema"])
    estimator.context_schema_ = Schema.from_dict(about["context"])
    estimator.knots_ = about["model"]["knots"]
    estimator.history_, estimator.held_out_ = about["training"], about["held_out"]
    estimator.n_features_in_ = about["features"]["count"]
    if about["features"]["names"] is not None:
        import numpy as np

        estimator.feature_names_in_ = np.array(about["features"]["names"], dtype=object)
    _restore_model(estimator, tensors, about["model"])
    return estimator


def _restore_model(estimator: Any, tensors: dict[str, Tensor], shape: dict[str, Any]) -> None:
    pnn, knots = tuple(shape["pnn"]), shape["knots"]
    read = [column.head(pnn, knots) for column in estimator.context_schema_.columns]
    estimator.context_reading_ = Reading(read) if read else None
    if estimator.context_reading_ is not None and "context.knots" in tensors:
        estimator.context_reading_.knots.copy_(tensors["context.knots"])
    estimator.model_ = (Whitened if shape.get("whiten") else NITS).mlp(
        [column.head(pnn, knots) for column in estimator.schema_.columns],
        hidden=shape["hidden"],
        blocks=shape["blocks"],
        dropout=shape["dropout"],
        context=sum(head.inputs for head in read),
        order=shape["order"],
    )
    state = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
    estimator.model_.load_state_dict(state)
    estimator.model_.eval()


def tuples(value: Any) -> Any:
    """JSON has no tuples: lists become tuples again."""
    if isinstance(value, list):
        return tuple(tuples(item) for item in value)
    return {name: tuples(item) for name, item in value.items()} if isinstance(value, dict) else value


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high
