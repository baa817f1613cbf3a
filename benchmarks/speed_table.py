"""The tables of docs/speed.md, from results/speed.json and results/scaling.json."""

from __future__ import annotations

from pathlib import Path

import results
from markdown_table import table
from results import Record

RACES = ("training", "training, tuned", "scoring", "sampling")


def speed_tables(folder: Path) -> str:
    """Returns our rows per second over the others', those of all, and how time grows with size."""
    speed, scaling = (results.read(folder, f"{name}.json") for name in ("speed", "scaling"))
    if not (speed and scaling):
        return "Speed has not been measured on this version yet."
    races = [
        (f"{name}, {columns} columns", found)
        for name in RACES
        for columns, found in speed[0]["results"][name]["columns"].items()
    ]
    ratios = [
        (head, {k: _ratio(v) for k, v in found["ours_over"].items()}) for head, found in races
    ]
    rates = [(head, {k: _rate(v) for k, v in found["rows_per_s"].items()}) for head, found in races]
    sweeps = list(scaling[0]["results"]["sweeps"].values())
    made = _crossed("rows/s of nits-mlp over", ratios), _crossed("rows/s", rates)
    return "\n\n".join((*made, power_table(sweeps)))


def _crossed(name: str, columns: list[tuple[str, dict[str, str]]]) -> str:
    """Returns a line for each contender and a column for each race; dashes where it had no part."""
    contenders = dict.fromkeys(key for _, cells in columns for key in cells)
    lines = [(key, *(cells.get(key, "–") for _, cells in columns)) for key in contenders]
    return table((name, *(head for head, _ in columns)), lines)


def power_table(sweeps: list[Record]) -> str:
    """Returns the exponents of the power laws: time = c · sizeᵖ."""
    threads = [f"{n} thread{'s' if n != '1' else ''}" for n in sweeps[0]["threads"]]
    lines = []
    for sweep in sweeps:
        reach = f"{min(sweep['sizes']):,} … {max(sweep['sizes']):,} {sweep['against']}"
        powers = [f"{line['exponent']:.2f}" for line in sweep["threads"].values()]
        lines.append((f"{sweep['work']}, {reach}", *powers))
    return table(("time grows with the power", *threads), lines)


def _ratio(spread: dict[str, float]) -> str:
    low, middle, high = (spread[name] for name in ("quartile_low", "median", "quartile_high"))
    return f"**{middle:.3g}** ({low:.3g} … {high:.3g})"


def _rate(spread: dict[str, float]) -> str:
    return f"{spread['median']:,.0f}"
