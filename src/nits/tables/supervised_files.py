"""A fitted `NITSRegressor` or `NITSClassifier` as one file: that of the density which it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from nits.model import storage
from nits.tables import persistence
from nits.tables.classifier import NITSClassifier
from nits.tables.regressor import NITSRegressor

KINDS: dict[str, type[Any]] = {cls.kind: cls for cls in (NITSRegressor, NITSClassifier)}


def save(estimator: Any, path: str | Path) -> None:
    """Writes a fitted estimator, under a temporary name first."""
    own = {
        "parameters": persistence.parameters(estimator),
        "targets": estimator.targets_,
        "features": persistence.features(estimator),
    }
    if isinstance(estimator, NITSClassifier):
        each = estimator.classes_ if len(estimator.targets_) > 1 else [estimator.classes_]
        own["classes"] = [[str(c.dtype), c.tolist()] for c in each]
    about = {**persistence.description(estimator.density_), "kind": estimator.kind}
    storage.write(path, persistence.tensors(estimator.density_), {**about, "supervised": own})


def restored(tensors: dict[str, Tensor], about: dict[str, Any]) -> Any:
    """Returns the estimator that a file describes."""
    own = about["supervised"]
    estimator = KINDS[about["kind"]](**own["parameters"])
    estimator.density_ = persistence.restored(tensors, about)
    estimator.targets_ = own["targets"]
    persistence.restore_features(estimator, own["features"])
    if "classes" in own:
        each = [np.array(values, dtype=dtype) for dtype, values in own["classes"]]
        estimator.classes_ = each[0] if len(each) == 1 else each
    return estimator
