"""The models that are compared, by name: their modules, their packages and their settings.

A module is imported when one of its models is used, so that a rival has to be installed only to be
run. Each has `fit(split, settings, minutes, seed)`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from models.fitted import Fitted, Settings
from nits.datasets import Split

OURS = "nits-mlp"
ALL_OURS = (OURS, "nits-conv", "nits-window")
MODULES = {
    "nits-mlp": "ours",
    "nits-conv": "ours",
    "nits-window": "ours",
    "zuko-nsf": "zuko_flows",
    "zuko-maf": "zuko_flows",
    "zuko-naf": "zuko_flows",
    "nflows-rq-autoregressive": "nflows_flows",
    "nflows-rq-coupling": "nflows_flows",
    "gaussian-mixture": "sklearn_models",
    "kernel-density": "sklearn_models",
}
"""The module that a model is trained by."""

RIVALS = tuple(name for name in MODULES if name not in ALL_OURS)
PACKAGES = {
    "zuko_flows": "zuko",
    "nflows_flows": "nflows",
    "sklearn_models": "scikit-learn",
}
"""The package that a rival comes in."""

USUAL = "two-core"
"""Settings of ours that have no other name; those of rivals are called `rivals`."""

FREE = "schedule-free"
"""Settings of rivals that are trained as our own model is, without a schedule."""

SETTINGS = Path(__file__).resolve().parents[1] / "settings"


Fit = Callable[[Split, Settings, float, int], Fitted]
"""Trains on a split's train rows for some minutes and from a seed, and chooses by validation."""


def fit(model: str) -> Fit:
    """Returns the function that trains a model."""
    return cast(Fit, import_module(f"models.{MODULES[model]}").fit)


def versions(model: str) -> dict[str, str]:
    """Returns the version of the package that a rival comes in."""
    package = PACKAGES.get(MODULES[model])
    return {} if package is None else {package: version(package)}


def kind_of(model: str, kind: str) -> str:
    """Returns which settings a model has: rivals those of rivals, unless FREE is asked for."""
    return "rivals" if model in RIVALS and kind != FREE else kind


def settings(dataset: str, model: str, kind: str = USUAL) -> Settings:
    """Returns a model's settings of a kind on a data set, made as settings/base.toml says."""
    base, own = _read("base"), _read(dataset)
    found: Settings = {"model": model, **base.get(model, {}), **own.get(model, {})}
    kind = kind_of(model, kind)
    if kind in (USUAL, "rivals"):
        return found
    changes = [tables[kind][model] for tables in (base, own) if model in tables.get(kind, {})]
    if not changes:
        raise ValueError(
            f"settings/{dataset}.toml has no table [{kind}.{model}]; add it, or choose another."
        )
    for change in changes:
        found |= change
    return found


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((SETTINGS / f"{name}.toml").read_text(encoding="utf-8"))
