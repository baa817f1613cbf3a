"""Heads to JSON and back: how a file describes the columns of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import chain, groupby, repeat
from typing import Any

from nits.heads.atoms import Atoms
from nits.heads.categorical import Categorical
from nits.heads.continuous import Continuous
from nits.heads.head import Head
from nits.heads.integer import Integer
from nits.heads.quantized import Quantized

KINDS: dict[str, type[Any]] = {
    "continuous": Continuous,
    "quantized": Quantized,
    "integer": Integer,
    "categorical": Categorical,
    "atoms": Atoms,
}
NAMES = {kind: name for name, kind in KINDS.items()}


def described(heads: Sequence[Head]) -> list[dict[str, Any]]:
    """Returns descriptions of the heads: equal neighbours once, with their number."""
    return [{**_described(head), "columns": len(list(same))} for head, same in groupby(heads)]


def heads_of(descriptions: Sequence[dict[str, Any]]) -> tuple[Head, ...]:
    """Returns the heads from the descriptions that `described` made."""
    found = (repeat(_head(about), int(about["columns"])) for about in descriptions)
    return tuple(chain.from_iterable(found))


def _described(head: Head) -> dict[str, Any]:
    values = {name: _plain(value) for name, value in asdict(head).items()}  # type: ignore[call-overload]
    return {"head": NAMES[type(head)], **values}


def _head(about: dict[str, Any]) -> Head:
    kind = KINDS[about["head"]]
    names = {field.name for field in fields(kind)}
    found: Head = kind(**{name: _value(about[name]) for name in names & set(about)})
    return found


def _plain(value: Any) -> Any:
    """Returns a value as JSON can hold it: JSON has no infinity, which becomes a string."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return float(value) if value in ("inf", "-inf") else value
