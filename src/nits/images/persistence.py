"""A fitted `NITSImages` as one file, in the layout of `nits.model.storage`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import nits
from nits import checks
from nits.images.dequantized import LEVELS
from nits.images.estimator import NITSImages
from nits.model import storage
from nits.pnn import plain
from nits.weights import allowance as sizes
from nits.weights import image_sizes


def save(estimator: NITSImages, path: str | Path) -> None:
    """Writes a fitted estimator."""
    tensors = {f"model.{name}": t.contiguous() for name, t in estimator.model_.state_dict().items()}
    parameters = estimator.get_params()
    del parameters["checkpoint"]  # a path of the machine that trained
    if not isinstance(estimator.size, str):
        parameters["size"] = image_sizes.to_json(estimator.size)
    about = {
        "nits": nits.__version__,
        "kind": "images",
        "parameters": parameters,
        "shape": list(estimator.shape_),
        "size": image_sizes.to_json(estimator._size()),
        "classes": None if estimator.classes_ is None else estimator.classes_.tolist(),
        "training": estimator.history_,
        "held_out": estimator.held_out_,
    }
    storage.write(path, tensors, about)


def restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> NITSImages:
    """Returns the estimator that a file describes."""
    parameters = {name: storage.tuples(value) for name, value in about["parameters"].items()}
    if not isinstance(parameters["size"], str):
        parameters["size"] = image_sizes.from_json(parameters["size"])
    estimator = NITSImages(**parameters)
    channels, height, width = about["shape"]
    estimator.shape_ = (channels, height, width)
    estimator.classes_ = None if about["classes"] is None else np.array(about["classes"])
    estimator.history_ = about["training"]
    estimator.held_out_ = about["held_out"]
    size = image_sizes.from_json(storage.tuples(about["size"]))
    allowance = storage.allowance(tensors)
    context = len(about["classes"] or ())
    levels = sizes.size(estimator.levels, "levels", allowance.numbers + LEVELS, least=2)
    widths = checks.hidden(estimator.pnn)
    image_sizes.allowed(
        size,
        allowance,
        shape=about["shape"],
        context=context,
        inputs=levels,
        outputs=plain.parameters(widths),
    )
    estimator.model_ = estimator._built(size, context, 0)
    state = {name.removeprefix("model."): t for name, t in tensors.items()}
    storage.fill(estimator.model_, state)
    estimator.model_.eval()
    return estimator
