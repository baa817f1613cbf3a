"""The sections about training and origin: curves, seeds, versions, and hashes of files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import nits
from nits.report.subject import CannotSay, Subject

PACKAGES = ("torch", "numpy", "scikit-learn", "scipy")
BLOCK = 1 << 20


@dataclass(frozen=True)
class Curve:
    """How one network was trained: nats per row against steps."""

    steps: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    best_step: int
    seconds: float
    stopped: str


@dataclass(frozen=True)
class Training:
    """The networks of a model, in the order in which they were trained."""

    curves: tuple[Curve, ...]


def trained(subject: Subject) -> Training:
    """Returns how the model's networks were trained."""
    return of_history(subject.model.history_)


def of_history(history: dict[str, Any]) -> Training:
    """Returns the curves of a history, as an estimator keeps it."""
    every = [history, *history.get("others", [])]
    curves = [
        Curve(
            tuple(h["step"]),
            tuple(h["train"]),
            tuple(h["validation"]),
            int(h["best_step"]),
            float(h["seconds"][-1]),
            str(h["stopped"]),
        )
        for h in every
        if h["step"]
    ]
    if not curves:
        raise CannotSay("The model file has no training curve: training ended before the first.")
    return Training(tuple(curves))


@dataclass(frozen=True)
class File:
    """A file: its name, its size in bytes, and its SHA-256."""

    role: str
    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, role: str, path: Path) -> File:
        """Reads a file."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        return cls(role, path.name, path.stat().st_size, digest.hexdigest())


@dataclass(frozen=True)
class Provenance:
    """Where a report comes from.

    parameters: Of the estimator, those that the user named.
    """

    versions: tuple[tuple[str, str], ...]
    files: tuple[File, ...]
    parameters: tuple[tuple[str, str], ...]
    seed: int
    weights: int


def of_model(model: Any, seed: int, files: Sequence[File]) -> Provenance:
    """Returns versions, the parameters that are not defaults, and the files."""
    defaults = type(model)().get_params()
    named = {k: v for k, v in model.get_params().items() if v != defaults[k] and k != "verbose"}
    return Provenance(
        (("nits", nits.__version__), ("Python", platform.python_version()), *_versions()),
        tuple(files),
        tuple((name, repr(value)) for name, value in named.items()),
        seed,
        sum(p.numel() for p in model.model_.parameters()),
    )


def _versions() -> list[tuple[str, str]]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
