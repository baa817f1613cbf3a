"""What the page says about columns, as conditions on them.

A condition comes as JSON, an object with one of these keys: {"range": [low, high]} with null for no
end, both ends included; {"value": text}; {"levels": [position, …]}; {"missing": true or false}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nits.explore.shapes import Within
from nits.explore.views import BINS, Axis, Listing, Numbers, View, amounts
from nits.tables.columns import plainly
from nits.tables.questions.conditions import Among, Condition, Conditions, Range, Value, missing
from nits.tables.questions.cuts import typed, valued

TOO_LONG = 200
"""Characters that a value may have."""


def conditions(views: Sequence[View], given: Any) -> Conditions:
    """Returns the conditions of a request, by column."""
    if not isinstance(given, Mapping):
        raise ValueError(f"the conditions must be an object by column, but are {_type(given)}.")
    by_name = {view.column.name: view for view in views}
    found: Conditions = {}
    for name, said in given.items():
        if name not in by_name:
            raise ValueError(f"the model has no column {name!r}; reload the page.")
        found[name] = [_condition(by_name[name], said)]
    return found


def _condition(view: View, said: Any) -> Condition:
    name = view.column.name
    if not isinstance(said, Mapping) or len(said) != 1:
        raise ValueError(f"{name!r} must have one condition, but has {_type(said)}.")
    key, told = next(iter(said.items()))
    if key == "missing":
        return missing if told is True else Range()
    if key == "levels" and isinstance(view, Listing):
        return _levels(view, told)
    if key == "value":
        return Value(value(view, told))
    if key == "range" and isinstance(view, Axis):
        return _range(view, told)
    raise ValueError(f"{name!r} must have a range, a value, levels or be missing, not {key!r:.40}.")


def _levels(view: Listing, told: Any) -> Condition:
    every = view.levels
    if not isinstance(told, list) or not told:
        raise ValueError(f"{view.column.name!r} must have at least one level; choose one.")
    if not all(type(k) is int and 0 <= k < len(every) for k in told):
        raise ValueError(f"the levels of {view.column.name!r} are 0 to {len(every) - 1}; reload.")
    chosen = tuple(every[k] for k in sorted(set(told)))
    return Value(chosen[0]) if len(chosen) == 1 else Among(chosen)


def _range(view: Axis, told: Any) -> Range:
    if not isinstance(told, list) or len(told) != 2:
        raise ValueError(f"a range of {view.column.name!r} must be a pair [low, high].")
    low, high = (None if _blank(end) else value(view, end) for end in told)
    if low is not None and high is not None and _amount(view, low) > _amount(view, high):
        raise ValueError(
            f"a range of {view.column.name!r} must not end before it begins, but goes from "
            f"{told[0]} to {told[1]}."
        )
    return Range(low, high, to_high=True)


def value(view: View, told: Any) -> Any:
    """Returns a value of a column from what the page says: a text, or a level's position."""
    column = view.column
    if isinstance(view, Listing) and type(told) is int:
        return _levels(view, [told]).value  # type: ignore[union-attr]
    if type(told) in (int, float):
        told = repr(told)
    if not isinstance(told, str) or _blank(told) or len(told) > TOO_LONG:
        raise ValueError(f"{column.name!r} must be given a value, but is given {_type(told)}.")
    text = told.strip()
    if isinstance(view, Listing):
        spelled = {str(level): level for level in view.levels}
        return spelled.get(text, text)
    unit = getattr(column, "unit", None)
    if unit is not None and unit.startswith("m"):
        return _duration(column.name, text, unit)
    return typed(column, text)


def _duration(name: str, text: str, unit: str) -> Any:
    """Returns a duration from its seconds."""
    try:
        ticks = round(float(text) * plainly.per_second(unit))
    except (ValueError, OverflowError):
        raise ValueError(f"{name!r} must be given seconds, but is given {text!r}.") from None
    return np.array([ticks], np.int64).view(unit)[0]


def _amount(view: View, of: Any) -> float:
    return float(amounts(valued(view.column, of))[0])


def within(view: View, told: Sequence[Condition]) -> Within:
    """Returns what conditions leave of a column."""
    given = told[0] if told else None
    if isinstance(view, Listing):
        if not isinstance(given, Value | Among):
            return None
        values = given.values if isinstance(given, Among) else (given.value,)
        return frozenset(view.levels.index(value) for value in values)
    if not isinstance(given, Range):
        return None
    low = 0 if given.low is None else _bin(view, _amount(view, given.low))
    high = BINS - 1 if given.high is None else _bin(view, _amount(view, given.high))
    return low, max(low, high)


def _bin(view: Axis, x: float) -> int:
    at: Numbers = np.array([x])
    return int(np.clip(view.bins(at)[0], 0, BINS - 1))


def _blank(told: Any) -> bool:
    return told is None or (isinstance(told, str) and not told.strip())


def _type(told: Any) -> str:
    """Returns what was said, for a sentence."""
    return "nothing" if _blank(told) else f"{type(told).__name__} {str(told)[:40]!r}"
