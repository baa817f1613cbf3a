"""Long arrays cut into slices: a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator


def slices(count: int, size: int) -> Iterator[slice]:
    """Yields slices of at most `size` that cover 0 … count − 1 in order."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
