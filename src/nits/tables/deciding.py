"""Decides what columns are, one after another, or at once as tasks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from nits.engines.engine import Engine
from nits.tables.columns import Column
from nits.training.progress import Reporter

Item = TypeVar("Item")


def decided(
    decide: Callable[[Item], Column], items: Sequence[Item], engine: Engine | None
) -> list[Column]:
    """Returns what is decided of each item, in their order.

    decide: A function of a module, which other processes find by its name.
    engine: Where the items are shared out; by default all are decided here.
    """
    if engine is None or len(items) < 2 or engine.parallel() < 2:
        return [decide(item) for item in items]
    results = engine.run(partial(_task, decide), items, label="columns")
    found = [column for column in results if column is not None]
    if len(found) < len(items):
        raise KeyboardInterrupt
    return found


def _task(decide: Callable[[Item], Column], item: Item, reporter: Reporter) -> Column:
    return decide(item)
