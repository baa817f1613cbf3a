"""Whether what was read from a file has the types that its classes declare."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints


def check(value: Any, name: str) -> None:
    """Raises a TypeError if a field of a dataclass, or of one in it, has another type."""
    hints = get_type_hints(type(value))
    for field in fields(value):
        found, label = getattr(value, field.name), f"{name}.{field.name}"
        if not fits(found, hints[field.name]):
            raise TypeError(f"{label} must not be {repr(found)[:40]}")
        if is_dataclass(found):
            check(found, label)


def fits(value: Any, hint: Any) -> bool:
    """Returns whether a value is of a type; an integer is a float, and a boolean no integer."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inside)
    if hint is None or hint is type(None):
        return value is None
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, inside)
    if origin in (list, dict):
        return isinstance(value, origin) and _parts_fit(value, inside)
    if hint is float:
        return type(value) in (int, float)
    if hint in (int, bool, str):
        return type(value) is hint
    return isinstance(value, origin or hint)


def _items_fit(value: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
    if len(inside) == 2 and inside[1] is Ellipsis:
        return all(fits(item, inside[0]) for item in value)
    return len(value) == len(inside) and all(map(fits, value, inside))


def _parts_fit(value: Any, inside: tuple[Any, ...]) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value
    # JSON has no infinity: what was infinite is None.
    return all(part is None or fits(part, inside[-1]) for part in parts)
