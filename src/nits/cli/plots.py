"""Figures of a model: columns, pairs and calibration of a table; rows and surprise of images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import atomic
from nits.printable import printable
from nits.report import split, words
from nits.report.axes import Bars
from nits.report.calibration import Calibration, OfColumn
from nits.report.dependence import Dependence, Pair
from nits.report.marginals import Marginal, Marginals

TABLE, SAMPLES, FAR = "#a9bfd9", "#b8561a", "#a3352b"
LINE = "#3e6390"
MOST_CALIBRATED = 40


def marginals(found: Marginals) -> Any:
    """Draws every column of the table beside that of samples."""
    figure, axes = _panels(len(found.columns), (3.4, 2.9))
    for axis, column in zip(axes, found.columns, strict=True):
        axis.set_title(words.short(column.name, 40), fontsize=9)
        axis.tick_params(labelsize=7)
        if column.axis is None:
            axis.text(0.5, 0.5, "no known value", ha="center", transform=axis.transAxes)
        elif isinstance(column.axis, Bars):
            _bars(axis, column.axis, column)
        else:
            _histogram(axis, column)
        _note(axis, column)
    labelled = [a for a, column in zip(axes, found.columns, strict=True) if column.axis is not None]
    if labelled:
        labelled[0].legend(fontsize=7)
    return figure


def _bars(axis: Any, bars: Bars, column: Marginal) -> None:
    """Draws bars from top to bottom, so that labels never meet."""
    at = np.arange(len(bars))
    axis.barh(at, column.real, 0.7, color=TABLE, label="table")
    axis.plot(column.drawn, at, "|", ms=9, mew=1.8, color=SAMPLES, label="samples")
    labels = [words.short(label, 18) for label in bars.labels]
    axis.set_yticks(at, labels, fontsize=min(7.0, 90 / len(bars)))
    axis.invert_yaxis()


def _histogram(axis: Any, column: Marginal) -> None:
    edges = column.axis.edges if column.axis is not None else np.empty(0)
    for shares, colour, label in (
        (column.real, TABLE, "table"),
        (column.drawn, SAMPLES, "samples"),
    ):
        filled = label == "table"
        axis.stairs(shares / np.diff(edges), edges, fill=filled, color=colour, lw=1.3, label=label)
    ticks = column.axis.ticks if column.axis is not None else []
    axis.set_xticks([tick.place for tick in ticks], [tick.label for tick in ticks])
    axis.set_yticks([])


def _note(axis: Any, column: Marginal) -> None:
    """Writes the shares of missing and frequent values below a column."""
    if column.special:
        lines = [
            f"{words.short(each.label, 14)}: {words.percent(each.real)}, "
            f"samples {words.percent(each.drawn)}"
            for each in column.special
        ]
        axis.set_xlabel("\n".join(lines), fontsize=7)


def pairs(found: Dependence | None) -> Any:
    """Draws the pairs of columns that tell most of one another: the table, and samples."""
    if found is None:
        figure, axes = _panels(1, (4, 3))
        axes[0].text(0.5, 0.5, "a pair needs two columns", ha="center")
        axes[0].axis("off")
        return figure
    figure, axes = _panels(2 * len(found.pairs), (2.9, 2.7))
    for i, pair in enumerate(found.pairs):
        for axis, shares, whose in (
            (axes[2 * i], pair.real, "table"),
            (axes[2 * i + 1], pair.drawn, "samples"),
        ):
            _cells(axis, pair, shares, whose)
    return figure


def _cells(axis: Any, pair: Pair, shares: NDArray[np.float64], whose: str) -> None:
    across, up = pair.axes
    area = np.outer(np.diff(across.edges), np.diff(up.edges))
    colours = "Blues" if whose == "table" else "Oranges"
    both = np.sqrt(np.stack([pair.real, pair.drawn]) / area)
    shown = np.ma.masked_equal(np.sqrt(shares / area), 0)
    top = float(np.quantile(both[both > 0], 0.98)) if (both > 0).any() else 1.0
    axis.pcolormesh(across.edges, up.edges, shown.T, cmap=colours, vmin=-0.15 * top, vmax=top)
    axis.set_title(whose, fontsize=8)
    x, y = split.short(across, 6), split.short(up, 10)
    rotation = 60 if isinstance(across, Bars) else 0
    axis.set_xticks([t.place for t in x], [t.label for t in x], fontsize=6, rotation=rotation)
    axis.set_yticks([t.place for t in y], [t.label for t in y], fontsize=6)
    axis.set_xlabel(words.short(pair.names[0], 30), fontsize=8)
    axis.set_ylabel(words.short(pair.names[1], 30), fontsize=8)


def training(history: dict[str, Any]) -> Any:
    """Draws training and validation nats against time."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(5, 3.4))
    axis.plot(history["seconds"], history["train"], label="train")
    if history["validation"]:
        axis.plot(history["seconds"], history["validation"], label="validation")
    axis.set(xlabel="seconds", ylabel="nats per row, in the model's units")
    axis.legend()
    figure.tight_layout()
    return figure


def calibration(found: Calibration) -> Any:
    """Draws, column by column, the share of transforms up to u, less u, and what chance allows."""
    columns = sorted(found.columns, key=lambda c: -c.gap / c.band)[:MOST_CALIBRATED]
    figure, axes = _panels(len(columns), (2.7, 2.0))
    reach = 1.2 * max(max(c.band, float(np.abs(c.curve).max())) for c in columns)
    for axis, column in zip(axes, columns, strict=True):
        _calibrated(axis, column, reach)
    figure.supxlabel("u", fontsize=8)
    figure.supylabel("share of entries with probability up to u, less u", fontsize=8)
    name = words.short(found.worst.name, 40)
    worst = f"worst: {name}, {found.worst.gap:.3f} off; grey: what chance allows"
    figure.suptitle(worst, fontsize=9)
    return figure


def _calibrated(axis: Any, column: OfColumn, reach: float) -> None:
    axis.axhspan(-column.band, column.band, color="0.92", zorder=0)
    axis.axhline(0, color="0.7", lw=0.8)
    u = np.linspace(0, 1, len(column.curve))
    axis.plot(u, column.curve, lw=1.2, color=FAR if column.outside else LINE)
    axis.set(xlim=(0, 1), ylim=(-reach, reach))
    axis.set_title(words.short(column.name, 30), fontsize=8)
    axis.tick_params(labelsize=6)


def _panels(count: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """Returns a figure with so many panels, at most four in a row."""
    columns = min(4, count)
    rows = -(-count // columns)
    figure, axes = _pyplot().subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat[count:]:
        axis.axis("off")
    return figure, list(axes.flat[:count])


def image_rows(names: list[str], rows: list[NDArray[np.uint8]]) -> Any:
    """Draws several sets of images, one below the other."""
    from nits.images.arrays import grid

    pyplot = _pyplot()
    figure, axes = pyplot.subplots(len(rows), 1, figsize=(8, 1.6 * len(rows)), squeeze=False)
    for axis, name, images in zip(axes.flat, names, rows, strict=True):
        axis.imshow(grid(images, columns=-(-len(images) // 2)), cmap="gray", vmin=0, vmax=255)
        axis.set_title(name, fontsize=9)
        axis.axis("off")
    figure.tight_layout()
    return figure


def surprise(images: NDArray[np.uint8], bits: NDArray[np.float64]) -> Any:
    """Draws images above maps of the bits that each of their pixels needs."""
    pyplot = _pyplot()
    count = len(images)
    figure, axes = pyplot.subplots(2, count, figsize=(1.1 * count + 1, 2.6), squeeze=False)
    per_pixel = bits if bits.ndim == 3 else bits.sum(3)
    most = max(4.0, float(np.quantile(per_pixel, 0.97)))  # one pixel may need hundreds of bits
    for above, below, image, each in zip(*axes, images, per_pixel, strict=True):
        above.imshow(image, cmap="gray", vmin=0, vmax=255)
        shown = below.imshow(each, cmap="magma", vmin=0, vmax=most)
        for axis in (above, below):
            axis.axis("off")
        below.set_title(f"{each.mean():.2f}", fontsize=8)
    figure.suptitle("bits per pixel, and their mean", fontsize=9)
    figure.colorbar(shown, ax=axes, fraction=0.02, extend="max")
    return figure


def write(figures: dict[str, Any], folder: Path) -> None:
    """Writes figures as PNG files, closes them, and prints how many."""
    for name, figure in figures.items():
        target = folder / f"{name}.png"
        with atomic.temporary(target) as place, atomic.naming(target):
            figure.savefig(place, format="png", dpi=110)
        _pyplot().close(figure)
    print(f"{len(figures)} figures in {printable(folder)}", file=sys.stderr)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["text.parse_math"] = False  # a $ in a name is no formula
    from matplotlib import pyplot

    return pyplot
