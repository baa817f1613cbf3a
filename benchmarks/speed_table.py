"""The tables of docs/speed.md, from results/speed.json and results/scaling.json."""

from __future__ import annotations

import json
from pathlib import Path

from markdown_table import table
from results import Record

NONE = "Speed has not been measured on this version yet."
RACES = ("training", "training, tuned", "scoring", "sampling")


def speed_tables(results: Path) -> str:
    """Returns the tables of the files there are, a blank line between them."""
    makers = {"speed": (race_table, rate_table), "scaling": (scaling_table,)}
    found = [
        maker(json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["results"])
        for name, all_of_one in makers.items()
        if (results / f"{name}.json").exists()
        for maker in all_of_one
    ]
    return "\n\n".join(found) or NONE


def race_table(results: Record) -> str:
    """Returns how many times a rival's rows per second ours are, by race and number of columns."""
    races = [
        (f"{name}, {columns} columns", found["ours_over"])
        for name in RACES
        for columns, found in results[name]["columns"].items()
    ]
    rivals = list(dict.fromkeys(rival for _, found in races for rival in found))
    lines = [
        (rival, *(_ratio(found[rival]) if rival in found else "–" for _, found in races))
        for rival in rivals
    ]
    return table(("rows/s of nits-mlp over", *(head for head, _ in races)), lines)


def rate_table(results: Record) -> str:
    """Returns the rows per second of every contender, by race and number of columns."""
    races = [
        (f"{name}, {columns} columns", found["rows_per_s"])
        for name in RACES
        for columns, found in results[name]["columns"].items()
    ]
    names = dict.fromkeys(name for _, found in races for name in found)
    lines = [
        (name, *(f"{found[name]['median']:,.0f}" if name in found else "–" for _, found in races))
        for name in names
    ]
    return table(("rows/s", *(head for head, _ in races)), lines)


def scaling_table(results: Record) -> str:
    """Returns the exponents of the power laws: time = c · sizeᵖ."""
    sweeps = list(results["sweeps"].values())
    lines = []
    for sweep in sweeps:
        reach = f"{min(sweep['sizes']):,} … {max(sweep['sizes']):,} {sweep['against']}"
        powers = [f"{line['exponent']:.2f}" for line in sweep["threads"].values()]
        lines.append((f"{sweep['work']}, {reach}", *powers))
    return table(("time grows with the power", *map(threads_of, sweeps[0]["threads"])), lines)


def _ratio(spread: dict[str, float]) -> str:
    low, middle, high = (spread[name] for name in ("quartile_low", "median", "quartile_high"))
    return f"**{middle:.3g}** ({low:.3g} … {high:.3g})"


def threads_of(count: str) -> str:
    """Returns the number of threads in words."""
    return f"{count} thread{'s' if count != '1' else ''}"
