"""Heads to JSON and back: how a file describes the columns of a model.

A head is a dictionary of its fields with its name under "head". What it is made of, such as the
edges of cells, is a dictionary too, with its name under "kind".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from itertools import chain, groupby, repeat
from typing import Any

from nits import typed
from nits.heads.atoms import Atoms
from nits.heads.categorical import Categorical
from nits.heads.cells import Cells
from nits.heads.continuous import Continuous
from nits.heads.cycles import Cycle
from nits.heads.head import Head
from nits.heads.inflated import Inflated
from nits.heads.integer import Integer
from nits.heads.quantized import Quantized
from nits.pnn.cells import CurvedEdges, ListedEdges
from nits.pnn.curves import Asinh, Line, Log, Logit

KINDS: dict[str, type[Any]] = {
    "continuous": Continuous,
    "quantized": Quantized,
    "integer": Integer,
    "categorical": Categorical,
    "atoms": Atoms,
    "cells": Cells,
    "inflated": Inflated,
    "listed": ListedEdges,
    "curved": CurvedEdges,
    "line": Line,
    "log": Log,
    "asinh": Asinh,
    "logit": Logit,
    "cycle": Cycle,
}
LARGEST = 2**63
"""The largest integer that a head may hold."""

NAMES = {kind: name for name, kind in KINDS.items()}


def described(heads: Sequence[Head]) -> list[dict[str, Any]]:
    """Returns descriptions of the heads: equal neighbours once, with their number."""
    return [
        {"head": NAMES[type(head)], **_fields(head), "columns": len(list(same))}
        for head, same in groupby(heads)
    ]


def heads_of(descriptions: Sequence[dict[str, Any]], most: int) -> tuple[Head, ...]:
    """Returns the heads from the descriptions that `described` made; at most so many."""
    counts = [about["columns"] for about in descriptions]
    if not all(type(count) is int and count > 0 for count in counts) or sum(counts) > most:
        raise ValueError(f"heads must be of 1 to {most} columns, but are of {str(counts)[:40]}")
    found = (repeat(_made(about["head"], about), about["columns"]) for about in descriptions)
    return tuple(chain.from_iterable(found))


def _fields(made: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(made, field.name)) for field in fields(made)}


def _made(name: str, about: dict[str, Any]) -> Any:
    kind = KINDS[name]
    names = {field.name for field in fields(kind)}
    made = kind(**{name: _value(about[name]) for name in names & set(about)})
    typed.check(made, "head")
    return made


def _plain(value: Any) -> Any:
    """Returns a value as JSON can hold it: JSON has no infinity, which becomes a string."""
    if is_dataclass(value):
        return {"kind": NAMES[type(value)], **_fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _made(value["kind"], value)
    if isinstance(value, list | tuple):
        return tuple(_value(part) for part in value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("a head has an integer that is too large")
    return float(value) if value in ("inf", "-inf") else value
