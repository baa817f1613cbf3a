"""The tables of docs/speed.md, from results/speed.json and results/scaling.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markup import table

Results = dict[str, Any]

NONE = "Speed has not been measured on this version yet."
RACES = ("training", "training, tuned", "scoring", "sampling")


def speed_tables(results: Path) -> str:
    """Returns a table for each of the files there are, a blank line between them."""
    makers = {"speed": (race_table, cost_table), "scaling": (scaling_table,)}
    found = [
        maker(json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["results"])
        for name, all_of_one in makers.items()
        if (results / f"{name}.json").exists()
        for maker in all_of_one
    ]
    return "\n\n".join(found) or NONE


def race_table(results: Results) -> str:
    """Returns how many times a rival's rows per second ours are, a column per race and number of columns."""
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


def cost_table(results: Results) -> str:
    """Returns rows per second, and the peak memory of training."""
    memory = results["training_memory"]["columns"]
    sizes = list(memory)
    heads = [f"{name}, {columns} columns" for name in (*RACES, "MiB to train") for columns in sizes]
    names = list(dict.fromkeys(name for columns in sizes for name in memory[columns]))
    lines = []
    for name in names:
        speeds = [
            results[race]["columns"][c]["rows_per_s"].get(name) for race in RACES for c in sizes
        ]
        cells = ["–" if s is None else f"{s['median']:,.0f}" for s in speeds]
        lines.append((name, *cells, *(f"{memory[c][name]:,.0f}" for c in sizes)))
    return table(("rows/s", *heads), lines)


def scaling_table(results: Results) -> str:
    """Returns the exponents of the power laws: time = c · sizeᵖ."""
    lines = [
        (
            f"{sweep['work']}, {min(sweep['sizes']):,} … {max(sweep['sizes']):,} {sweep['against']}",
            *(f"{line['exponent']:.2f}" for line in sweep["threads"].values()),
        )
        for sweep in results["sweeps"].values()
    ]
    threads = next(iter(results["sweeps"].values()))["threads"]
    return table(("time grows with the power", *map(_threads, threads)), lines)


def _ratio(spread: dict[str, float]) -> str:
    low, middle, high = (spread[name] for name in ("quartile_low", "median", "quartile_high"))
    return f"**{middle:.3g}** ({low:.3g} … {high:.3g})"


def _threads(count: str) -> str:
    return f"{count} thread{'s' if count != '1' else ''}"
