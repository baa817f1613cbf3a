"""Draws docs/images/*.png from the results: cost against size, and each search against the clock.

python benchmarks/plots.py     draws what has been measured
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import results
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results import RESULTS, ROOT, Record
from speed_table import threads_of

NAMED = ("the recipe", "no hats", "half the width", "schedule-free, twice the rate")
"""Changes of a search whose curves have a colour."""


def scaling_figure(record: Record) -> Figure:
    """Returns four panels of seconds against size, with the fitted exponents in the titles."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    sweeps = record["results"]["sweeps"].values()
    for axes, sweep in zip(figure.subplots(2, 2).flat, sweeps, strict=True):
        _sweep(axes, sweep)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def _sweep(axes: Axes, sweep: Record) -> None:
    """Medians with whiskers from quartile to quartile, and the power law through them."""
    sizes, powers = np.array(sweep["sizes"], dtype=float), []
    for index, (threads, line) in enumerate(sweep["threads"].items()):
        names = ("median", "quartile_low", "quartile_high")
        middle, low, high = (np.array([s[name] for s in line["seconds"]]) for name in names)
        colour, label, power = f"C{index}", threads_of(threads), line["exponent"]
        whiskers = np.stack([middle - low, high - middle])
        axes.errorbar(sizes, middle, whiskers, fmt="o", ms=4, color=colour, label=label)
        powers.append(f"{power:.2f} ({label})")
        level = np.mean(np.log(middle) - power * np.log(sizes))
        axes.plot(sizes, np.exp(level) * sizes**power, color=colour, linewidth=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set(xlabel=sweep["against"], ylabel=f"{sweep['work']}, seconds")
    axes.set_title(f"{sweep['work']}: exponent {', '.join(powers)}", fontsize=9)


def search_figure(record: Record) -> Figure:
    """Returns the validation nats of each change of a search against the clock."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes, found = figure.subplots(), record["results"]
    for name in found:
        seconds, values = zip(*found[name]["history"], strict=True)
        look = {"label": name, "lw": 2} if name in NAMED else {"color": "0.8", "zorder": 0}
        axes.plot(seconds, values, **look)
    ends = [change["validation_nats"] for change in found.values()]
    low, high = float(np.quantile(ends, 0.1)), max(ends)
    axes.set_ylim(low - 2 * (high - low) - 0.01, high + 0.2 * (high - low) + 0.01)
    threads, minutes = threads_of(str(record["hardware"]["threads"])), f"{record['minutes']:g}"
    title = f"{record['dataset']}, {minutes} minutes on {threads}"
    axes.set(xlabel="seconds, set-up included", ylabel="validation nats", title=title)
    axes.legend(loc="lower right", frameon=False)
    return figure


def draw(folder: Path, plots: Path) -> list[Path]:
    """Draws scaling.json and the searches of two minutes from the recipe, those that exist."""
    plots.mkdir(parents=True, exist_ok=True)
    made: dict[str, Figure] = {}
    for record in results.read(folder, "scaling.json"):
        made["scaling"] = scaling_figure(record)
    for record in results.read(folder, "ablation-*-2m.json"):
        if not record["defaults"]:
            made[f"ablation-{record['dataset']}-2m"] = search_figure(record)
    for name, figure in made.items():
        figure.savefig(plots / f"{name}.png", dpi=110)
    return [plots / f"{name}.png" for name in made]


def main() -> int:
    """Draws what there is and prints the paths."""
    for path in draw(RESULTS, ROOT / "docs" / "images"):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
