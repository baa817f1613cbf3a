"""Figures of a model: marginals, pairs and calibration of a table; rows and surprise of images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import atomic
from nits.printable import printable

MOST_PAIRS = 5
MOST_MARGINALS = 24
MOST_BARS = 30
BINS = 40
MOST_LETTERS = 40

HUGE = 1e100
"""Sizes beyond which, or below its inverse, numbers are divided before they are drawn."""

NARROW = 1e-6
"""Ranges, as a share of the numbers' size, below which the least is taken off before."""


def marginals(schema: Any, real: dict[str, NDArray[Any]], drawn: dict[str, NDArray[Any]]) -> Any:
    """Draws a histogram of every column beside that of samples."""
    pyplot = _pyplot()
    names = schema.names[:MOST_MARGINALS]
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(3.4 * columns, 2.6 * rows), squeeze=False
    )
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    for axis, name in zip(axes.flat, names, strict=False):
        _marginal(axis, schema.columns[schema.names.index(name)], real[name], drawn[name])
    axes.flat[0].legend(fontsize=8)
    figure.tight_layout()
    return figure


def _marginal(axis: Any, column: Any, real: NDArray[Any], drawn: NDArray[Any]) -> None:
    axis.set_title(_named(column.name), fontsize=9, parse_math=False)
    axis.tick_params(labelsize=7)
    if not len(real) or not len(drawn):
        axis.text(0.5, 0.5, "no values", ha="center", transform=axis.transAxes, fontsize=8)
        return
    measured = real.dtype.kind in "fiumM" and drawn.dtype.kind in "fiumM"
    every = column.facts.levels if column.facts.ordered else getattr(column, "levels", ())
    told_apart = column.facts.ordered or column.kind == "categorical"
    if told_apart and not (measured and len(every) > MOST_BARS):
        levels = list(every)[:MOST_BARS]
        for offset, values, label in ((-0.2, real, "table"), (0.2, drawn, "samples")):
            shares = [np.mean(values == level) for level in levels]
            axis.bar(np.arange(len(levels)) + offset, shares, 0.4, label=label)
        labels = [_label(level) for level in levels]
        axis.set_xticks(range(len(levels)), labels, rotation=60, fontsize=6, parse_math=False)
        return
    both = [_numbers(values) for values in (real, drawn)]
    place, unit = _ruler(both[0])
    axis.set_xlabel(_told(place, unit), fontsize=6)
    both = [(x - place) / unit for x in both]
    low, high = np.quantile(both[0], (0.002, 0.998))
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    styles: list[dict[str, Any]] = [
        {"alpha": 0.45, "label": "table"},
        {"histtype": "step", "label": "samples"},
    ]
    for x, style in zip(both, styles, strict=True):
        axis.hist(x, edges, weights=np.full(len(x), 1 / len(x)), **style)


def pairs(schema: Any, real: dict[str, NDArray[Any]], drawn: dict[str, NDArray[Any]]) -> Any:
    """Draws pairs of the first numeric columns: the table below the diagonal, samples above it."""
    pyplot = _pyplot()
    columns = [c for c in schema.columns if c.kind != "categorical" and not c.facts.ordered]
    measured = [column.name for column in columns]
    names = [n for n in measured if all(np.isfinite(x[n]).any() for x in (real, drawn))]
    names = names[:MOST_PAIRS]
    rulers = {name: _ruler(real[name]) for name in names}
    count = max(len(names), 1)
    figure, axes = pyplot.subplots(count, count, figsize=(2.2 * count, 2.2 * count), squeeze=False)
    for i, below in enumerate(names):
        for j, across in enumerate(names):
            axis = axes[i, j]
            axis.tick_params(labelsize=6)
            if i == j:
                axis.text(
                    *(0.5, 0.5, _named(below)),
                    ha="center",
                    transform=axis.transAxes,
                    fontsize=9,
                    parse_math=False,
                )
                axis.axis("off")
                continue
            source, colour = (real, "C0") if i > j else (drawn, "C1")
            x, y = (_measured(source[name], rulers[name]) for name in (across, below))
            axis.plot(x, y, ".", ms=1, alpha=0.3, color=colour)
            for limits, name in ((axis.set_xlim, across), (axis.set_ylim, below)):
                low, high = np.nanquantile(_measured(real[name], rulers[name]), (0.001, 0.999))
                limits(low, high if high > low else low + 1)
    figure.suptitle("below the diagonal: table · above: samples", fontsize=9)
    figure.tight_layout()
    return figure


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


def calibration(names: list[str], u: NDArray[np.float64]) -> Any:
    """Draws how uniform each column's probability integral transform is: share below u, minus u."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(5.4, 3.8))
    levels = np.linspace(0, 1, 201)
    for name, column in zip(names, u.T, strict=True):
        known = np.sort(column[~np.isnan(column)])
        below = np.searchsorted(known, levels, side="right") / max(len(known), 1)
        axis.plot(levels, below - levels, lw=1, label=_named(name).replace("$", r"\$"))
    band = 1.36 / np.sqrt(max(len(u), 1))  # Kolmogorov–Smirnov, 5 %
    axis.axhspan(-band, band, color="0.9", zorder=0)
    axis.set(xlabel="u", ylabel="share of rows with probability below u, minus u")
    if len(names) <= 12:
        axis.legend(fontsize=7)
    figure.tight_layout()
    return figure


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
        with atomic.temporary(folder / f"{name}.png") as place:
            figure.savefig(place, format="png", dpi=110)
        _pyplot().close(figure)
    print(f"{len(figures)} figures in {folder}", file=sys.stderr)


def _label(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else _named(level)


def _named(name: object) -> str:
    """Returns a name as figures show it."""
    text = printable(name)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


Ruler = tuple[float, float]


def _ruler(values: NDArray[Any]) -> Ruler:
    """Returns what to take off values and to divide them by, so that float64 can draw them."""
    known = values[np.isfinite(values)]
    least, greatest = float(known.min()), float(known.max())
    size = max(abs(least), abs(greatest))
    if size > HUGE or 0 < size < 1 / HUGE:
        return 0.0, size
    narrow = greatest - least < NARROW * size
    return (least, greatest - least or 1.0) if narrow else (0.0, 1.0)


def _told(place: float, unit: float) -> str:
    """Returns what was taken off and divided by, nothing if nothing was."""
    return "" if (place, unit) == (0.0, 1.0) else f"× {unit:.3g} + {place:.17g}"


def _measured(values: NDArray[Any], ruler: Ruler) -> NDArray[np.float64]:
    return (_numbers(values) - ruler[0]) / ruler[1]


def with_gaps(values: Any) -> NDArray[Any]:
    """Returns a column's values as numbers, NaN where they are missing; strings as they are."""
    if values.array.dtype.kind not in "fiubmM":
        found: NDArray[Any] = values.array
        return found
    return np.where(values.missing, np.nan, _numbers(values.array))


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[s]").astype(np.float64)
    return values.astype(np.float64)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
