"""Draws results/speed.json and results/scaling.json, those of the two that exist.

python benchmarks/speed_plot.py     writes docs/images/speed.png, .svg, scaling.png and .svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

ROOT = Path(__file__).resolve().parent
RESULTS, PLOTS = ROOT / "results", ROOT.parent / "docs" / "images"

Results = dict[str, Any]

COLOURS = ("#1b5e8c", "#e0862f", "#4d9a5b", "#a14a7a")
RACES = ("training", "training, tuned", "scoring", "sampling")
BAR = 0.38


def speed_figure(results: Results) -> Figure:
    """Returns a panel for each race: how many times a rival's rows per second ours are."""
    figure = Figure(figsize=(8.5, 9.2), layout="constrained")
    heights = [len(_rivals(results[name])) for name in RACES]
    panels = figure.subplots(len(RACES), 1, sharex=True, height_ratios=heights)
    for axes, name in zip(panels, RACES, strict=True):
        _bars(axes, name, results[name])
    panels[0].legend(frameon=False, loc="upper right", fontsize=8)
    panels[-1].set_xlabel(
        "rows per second of nits-mlp over the rival's, at the same number of weights"
    )
    return figure


def _rivals(race: Results) -> list[str]:
    """Returns the rivals in the order of the file."""
    return list(next(iter(race["columns"].values()))["ours_over"])


def _bars(axes: Axes, name: str, race: Results) -> None:
    """Bars from 1 to the median, whiskers from quartile to quartile, the median in figures."""
    rivals, count = _rivals(race), len(race["columns"])
    for index, (columns, found) in enumerate(race["columns"].items()):
        spreads = [found["ours_over"][rival] for rival in rivals]
        middle, low, high = (
            np.array([s[key] for s in spreads])
            for key in ("median", "quartile_low", "quartile_high")
        )
        y = np.arange(len(rivals)) + BAR * (index - (count - 1) / 2)
        axes.barh(y, middle - 1, BAR, left=1.0, color=COLOURS[index], label=f"{columns} columns")
        axes.errorbar(
            middle, y, xerr=[middle - low, high - middle], fmt="none", ecolor="black", capsize=2
        )
        for place, m, h in zip(y, middle, high, strict=True):
            axes.annotate(
                f"{m:.3g}",
                (max(h, 1.0), place),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rivals)), rivals)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_title(name, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def scaling_figure(results: Results) -> Figure:
    """Returns four panels of seconds against size, with the fitted exponents in the titles."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = figure.subplots(2, 2).flat
    for axes, sweep in zip(panels, results["sweeps"].values(), strict=True):
        _lines(axes, sweep)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def _lines(axes: Axes, sweep: Results) -> None:
    """Medians with whiskers from quartile to quartile, and the power law through them."""
    sizes, powers = np.array(sweep["sizes"], dtype=float), []
    for index, (threads, line) in enumerate(sweep["threads"].items()):
        middle, low, high = (
            np.array([s[key] for s in line["seconds"]])
            for key in ("median", "quartile_low", "quartile_high")
        )
        label = f"{threads} thread{'s' if threads != '1' else ''}"
        powers.append(f"{line['exponent']:.2f} ({label})")
        axes.errorbar(
            sizes,
            middle,
            [middle - low, high - middle],
            fmt="o",
            ms=4,
            color=COLOURS[index],
            label=label,
        )
        level = np.mean(np.log(middle) - line["exponent"] * np.log(sizes))
        axes.plot(
            sizes, np.exp(level) * sizes ** line["exponent"], color=COLOURS[index], linewidth=0.9
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: f"{x / 1024:g}k" if x > 1024 else f"{x:g}")
    )
    axes.set_xlabel(sweep["against"])
    axes.set_ylabel(f"{sweep['work']}, seconds")
    axes.set_title(f"{sweep['work']}: exponent {', '.join(powers)}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


FIGURES: dict[str, Callable[[Results], Figure]] = {"speed": speed_figure, "scaling": scaling_figure}


def draw(results: Path, plots: Path) -> list[Path]:
    """Draws every result file that exists, and returns the pictures."""
    drawn = []
    plots.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        source = results / f"{name}.json"
        if source.exists():
            picture = figure(json.loads(source.read_text(encoding="utf-8"))["results"])
            drawn += [_saved(picture, plots / f"{name}.{kind}") for kind in ("png", "svg")]
    return drawn


def _saved(figure: Figure, path: Path) -> Path:
    """Saves without a date, so that the same results give the same file."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with mpl.rc_context({"svg.hashsalt": "nits"}):
        figure.savefig(path, dpi=150, metadata=metadata)
    return path


def main() -> int:
    """Draws what there is and prints the paths."""
    for path in draw(RESULTS, PLOTS):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
