"""What was decided about a table's columns, in lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from nits.model.calibrated import Calibrated
from nits.model.density import Density
from nits.model.tempered import Tempered
from nits.printable import printable
from nits.tables.idle import Idle
from nits.tables.schema import Schema

if TYPE_CHECKING:
    from nits.tables.search import Trial

TINY = 1e-6
"""A variance of logarithms of weights in columns that all have the same."""

MOST_NAMES = 12
"""Columns of an order that are listed."""

MOST_LINES = 60
"""Columns that are listed one by one; of wider tables, the first so many."""


def lines(modelled: Schema, given: Schema, idle: Idle) -> list[str]:
    """Returns a line per column: its name, what it is, and why."""
    every = [(column, column.kind) for column in modelled.columns]
    every += [(column, f"given, {column.kind}") for column in given.columns]
    names = [printable(name) for name in (*(c.name for c, _ in every), *idle.columns)]
    width = min(40, max(len(name) for name in names))
    kinds = max((len(kind) for _, kind in every), default=0)
    found = []
    for column, kind in every:
        missing = f", {1 - column.known:.1%} missing" if column.optional else ""
        found.append(f"  {kind:{kinds}}  {printable(column.reason)}{missing}")
    for facts, *_ in idle.columns.values():
        found.append(f"  {'set aside':{kinds}}  {printable(facts.reason)}")
    found = [f"  {name:{width}}{line}" for name, line in zip(names, found, strict=True)]
    rest = len(found) - MOST_LINES
    return [*found[:MOST_LINES], f"  … and {rest} more"] if rest > 0 else found


def sorts(tried: list[dict[str, Any]]) -> list[str]:
    """Returns a line per sort of members: its weight, and its own figure of held-out rows."""
    ordered = sorted(tried, key=lambda sort: -sort["weight"])
    width = max((len(sort["sort"]) for sort in ordered), default=0)
    lines = []
    for sort in ordered:
        own = "" if sort["held_out"] is None else f"  {sort['held_out']:.4f} nats alone"
        lines.append(f"  {sort['sort']:{width}}  {sort['weight']:4.0%}{own}")
    return lines


def mixing(model: Density) -> list[str]:
    """Returns a line about a mixture whose columns count for less than by Bayes' rule, if it is."""
    inner = model.density if isinstance(model, Calibrated) else model
    if not isinstance(inner, Tempered):
        return []
    own = "" if bool((inner.column_logits.var(1) < TINY).all()) else "; each has its own weights"
    return [f"columns tell later ones about members to the power {float(inner.power):.2g}{own}"]


def curves(model: Density, names: Sequence[str]) -> list[str]:
    """Returns a line per column that was made narrower or broader, if any; see `Calibrated`."""
    found = [model.curve(i) for i in range(len(names))] if isinstance(model, Calibrated) else []
    lines = []
    for name, curve in zip(names, found, strict=False):
        if curve is not None:
            low, high = curve.inverse(torch.tensor([0.05, 0.95], dtype=torch.float64)).tolist()
            lines.append(
                f"  {printable(name)}: 90 % intervals are the mixture's {high - low:.0%} ones"
            )
    return ["made narrower or broader by held-out rows:", *lines] if lines else []


def orders(trials: list[Trial], names: list[str]) -> list[str]:
    """Returns a line per order that was tried, the longest trials first: what it is worth."""
    width = max((len(trial.name) for trial in trials), default=0)
    lines = []
    for trial in trials:
        columns = ", ".join(names[i] for i in trial.order[:MOST_NAMES])
        more = ", …" if len(trial.order) > MOST_NAMES else ""
        worth = f"{trial.ahead:+.4f} ± {trial.error:.4f} nats in {trial.steps} steps"
        taken = "taken" if trial.chosen else ""
        lines.append(f"  {trial.name:{width}}  {taken:5}  {worth}  {columns}{more}")
    return lines


def figure(held_out: float, error: float | None) -> str:
    """Returns the figure of held-out rows, with its standard error if that is known."""
    return f"{held_out:.4f}" if error is None else f"{held_out:.4f} ± {error:.4f}"
