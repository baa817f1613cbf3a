"""The models that are compared: one module per family, each with `fit(split, settings, minutes, seed)`.

A family is imported when one of its models is used, so that a rival has to be installed only to be
run.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, cast

from models.fitted import Fitted, Settings
from nits.datasets import Split

FAMILIES = {
    "nits-mlp": "nits_mlp",
    "nits-conv": "nits_conv",
    "zuko-nsf": "zuko_flows",
    "zuko-maf": "zuko_flows",
    "zuko-naf": "zuko_flows",
    "nflows-rq-autoregressive": "nflows_flows",
    "nflows-rq-coupling": "nflows_flows",
    "flowjax-nsf": "flowjax_flows",
    "gaussian-mixture": "sklearn_models",
    "kernel-density": "sklearn_models",
}
"""Every model's module."""

OURS = "nits-mlp"
ALL_OURS = (OURS, "nits-conv")
PACKAGES = {
    "zuko_flows": "zuko",
    "nflows_flows": "nflows",
    "flowjax_flows": "flowjax",
    "sklearn_models": "scikit-learn",
}
"""The package that a family of rivals comes in."""

FREE = "schedule-free"
"""Settings of rivals that are trained as our own model is, without a schedule."""

SETTINGS = Path(__file__).resolve().parents[1] / "settings"


class Fit(Protocol):
    """What every family offers: training within some minutes, set-up included."""

    def __call__(self, split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
        """Trains on split.train, chooses by split.validation, and leaves split.test alone."""


def fit(model: str) -> Fit:
    """Returns the function that trains a model."""
    return cast(Fit, import_module(f"models.{FAMILIES[model]}").fit)


def versions(model: str) -> dict[str, str]:
    """Returns the version of the package that a rival comes in."""
    package = PACKAGES.get(FAMILIES[model])
    return {} if package is None else {package: version(package)}


def group(model: str, kind: str) -> str:
    """Returns which settings a model has: ours have several kinds, rivals one and, if asked for, another."""
    return kind if model in ALL_OURS or kind == FREE else "rivals"


def settings(dataset: str, model: str, kind: str = "two-core") -> Settings:
    """Returns a model's settings of a kind on a data set."""
    tables = tomllib.loads((SETTINGS / f"{dataset}.toml").read_text(encoding="utf-8"))
    name = group(model, kind)
    found = tables.get(name, {}).get(model)
    if found is None:
        raise ValueError(
            f"settings/{dataset}.toml has no table [{name}.{model}]; add one, or choose another."
        )
    return {"model": model, **found}
