"""Whether values have the types that their classes declare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from nits import typed


@dataclass(frozen=True)
class Inner:
    share: float
    flag: bool = False


@dataclass(frozen=True)
class Outer:
    name: str
    rows: int
    inner: Inner | None = None
    ends: tuple[float, float] = (0, 1)
    levels: tuple[Any, ...] | None = None
    scores: dict[str, float] = field(default_factory=dict)


@pytest.mark.parametrize(
    "value",
    [
        Outer("a", 3),
        Outer("a", 3, Inner(1), (0.5, 2), ("x", None, 3), {"x": 0.5, "infinite": None}),  # type: ignore[dict-item]
    ],
)
def test_what_fits_passes(value: Outer) -> None:
    typed.check(value, "column")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": 3}, r"column\.name must not be 3"),
    ({"rows": True}, r"column\.rows must not be True"),
    ({"rows": 3.0}, r"column\.rows must not be 3\.0"),
    ({"inner": {}}, r"column\.inner must not be \{\}"),
    ({"inner": Inner("x")}, r"column\.inner\.share must not be 'x'"),  # type: ignore[arg-type]
    ({"inner": Inner(1, 0)}, r"column\.inner\.flag must not be 0"),  # type: ignore[arg-type]
    ({"ends": (0, 1, 2)}, r"column\.ends must not be"),
    ({"ends": [0, 1]}, r"column\.ends must not be"),
    ({"scores": {"x": "y"}}, r"column\.scores must not be"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_does_not_fit_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        typed.check(Outer(**{"name": "a", "rows": 3, **change}), "column")
