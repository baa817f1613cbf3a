"""What the verbs do with a folder of images, and with a model of them."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import atomic
from nits.cli import outputs
from nits.cli.growing import Growing
from nits.images import arrays
from nits.images.estimator import NITSImages
from nits.training.progress import Counter

FOR_TABLES = ("context", "drop", "order", "kind", "support", "whiten", "pool_below")
FOR_PICTURES = ("size", "pnn", "dequantize", "precision")
AT_ONCE = 64
SHOWN = 16


def fit(args: argparse.Namespace) -> int:
    """Fits a folder and saves."""
    for name in FOR_TABLES:
        if getattr(args, name):
            raise ValueError(
                f"--{name.replace('_', '-')} is for tables, but {args.table} is a folder."
            )
    names = (*FOR_PICTURES, "checkpoint")
    chosen = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    estimator = NITSImages(
        **chosen,
        max_minutes=args.max_minutes,
        max_steps=args.max_steps,
        validation_fraction=args.validation_fraction,
        random_state=args.seed,
        verbose=not args.quiet,
    )
    estimator.fit(Path(args.table))
    outputs.save(estimator, Path(args.output))
    if not args.quiet:
        held_out = estimator.held_out_
        figure = (
            "" if held_out is None else f"; {held_out:.4f} bits per dimension on held-out images"
        )
        print(f"{args.output}: {_shape(estimator)}{figure}", file=sys.stderr)
    return 0


def refuse_options(args: argparse.Namespace) -> None:
    """Raises an error if an option for images was given with a table."""
    for name in FOR_PICTURES:
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} is for folders of images, but {args.table} is a table.")


def _shape(model: NITSImages) -> str:
    channels, height, width = model.shape_
    return f"images of {height} × {width} pixels, {'grey' if channels == 1 else 'RGB'}"


def score(args: argparse.Namespace, model: NITSImages) -> int:
    """Writes the name of every image with its log-probability."""
    import pyarrow

    from nits.datasets.images import read_folder
    from nits.tables import files

    if args.per_column:
        raise ValueError(
            "--per-column is for tables, but this is a model of images; see nits plot."
        )
    names, pixels = read_folder(Path(args.table))
    images = arrays.as_given(pixels)
    total = 0.0
    with (
        files.written(args.output, safe=args.safe_csv) as writer,
        _counter(args, len(names)) as counter,
    ):
        for start in range(0, len(names), AT_ONCE):
            nats = model.score_samples(images[start : start + AT_ONCE])
            bits = -nats / (model.model_.columns * math.log(2))
            table = {
                "file": names[start : start + AT_ONCE],
                "log_probability": nats,
                "bits_per_dim": bits,
            }
            writer.write(pyarrow.table(table))
            counter.add(len(nats))
            total += float(bits.sum())
    if not args.quiet:
        print(f"{len(names)} images, {total / len(names):.4f} bits per dimension", file=sys.stderr)
    return 0


def sample(args: argparse.Namespace, model: NITSImages) -> int:
    """Draws images, and writes them as one grid, as an array, or as files in a folder."""
    output = Path(args.output)
    if args.output == "-" or (output.suffix not in (".png", ".npy") and not output.is_dir()):
        raise ValueError(
            "-o must name a .png file for a grid, an .npy file or an existing folder, "
            f"but is {args.output}."
        )
    if args.grow and output.suffix != ".png":
        raise ValueError(f"--grow writes a grid, a .png file, but -o is {args.output}.")
    labels, columns = _labels(args, model)
    seeds = np.random.SeedSequence(args.seed)
    parts: list[NDArray[np.uint8]] = []

    def so_far(images: NDArray[np.uint8]) -> None:
        left = args.rows - sum(map(len, parts)) - len(images)
        blank = np.zeros((left, *images.shape[1:]), np.uint8)
        _write(np.concatenate([*parts, images, blank]), output, columns)

    with Growing(args.rows, quiet=args.quiet, write=so_far if args.grow else None) as bar:
        for start in range(0, args.rows, AT_ONCE):
            some = slice(start, min(start + AT_ONCE, args.rows))
            count = some.stop - start
            seed = int(seeds.spawn(1)[0].generate_state(1)[0])
            for images in model.drawing(count, seed, None if labels is None else labels[some]):
                bar.add(images, count / model.shape_[1])
            parts.append(images)
    _write(np.concatenate(parts), output, columns)
    return 0


def _labels(args: argparse.Namespace, model: NITSImages) -> tuple[NDArray[Any] | None, int | None]:
    """Returns the label of every image, and the columns of their grid.

    Without a label, a model with labels draws as many images for each: a row of the grid.
    """
    label = _label(args)
    if label is not None or model.classes_ is None:
        return (None if label is None else np.full(args.rows, label)), None
    each = -(-args.rows // len(model.classes_))
    return np.repeat(model.classes_, each)[: args.rows], each


def _label(args: argparse.Namespace) -> int | None:
    found = None
    for text in args.given:
        name, _, value = text.partition("=")
        if name != "label" or not value.lstrip("-").isdigit():
            raise ValueError(f"--given must be label=NUMBER for a model of images, but is {text}.")
        found = int(value)
    return found


def _write(images: NDArray[np.uint8], output: Path, columns: int | None = None) -> None:
    if output.suffix == ".npy":
        with atomic.temporary(output) as place, atomic.naming(output), place.open("wb") as file:
            np.save(file, images)
    elif output.suffix == ".png":
        write_png(arrays.grid(images, columns), output)
    else:
        digits = len(str(len(images) - 1))
        for k, image in enumerate(images):
            write_png(image, output / f"{k:0{digits}}.png")


def write_png(image: NDArray[np.uint8], output: Path) -> None:
    """Writes an image, shape (H, W) or (H, W, 3)."""
    from PIL import Image

    with atomic.temporary(output) as place, atomic.naming(output):
        Image.fromarray(image).save(place, format="png")


def info(args: argparse.Namespace, model: NITSImages) -> int:
    """Prints the shape, the sizes and how training went."""
    weights = sum(p.numel() for p in model.model_.parameters())
    exact = "exact" if model.dequantize is None else "a bound, by uniform noise"
    print(f"{args.model}: a density of {_shape(model)}, {weights:,} weights")
    print(f"  size {model.size}, PNN {' × '.join(map(str, model.pnn))}, probabilities are {exact}")
    if model.classes_ is not None:
        print(f"  given a label: {', '.join(map(str, model.classes_))}")
    if model.held_out_ is not None:
        print(f"held-out images: {model.held_out_:.4f} bits per dimension")
    return 0


def plot(args: argparse.Namespace, model: NITSImages) -> int:
    """Draws images, completions of their upper halves, samples, surprise and the training curve."""
    from nits.cli import plots

    if model.classes_ is not None:
        raise ValueError(
            "plots are of joint densities, but this model has labels; score it instead."
        )
    pixels = arrays.read(args.table, model.shape_)[:SHOWN]
    images = arrays.as_given(pixels)
    upper = np.zeros(model.shape_[1:], bool)
    upper[: model.shape_[1] // 2] = True
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [images, model.complete(images, upper, args.seed), model.sample(len(images), args.seed)]
    figures = {
        "pictures": plots.image_rows(["images", "lower half drawn anew", "samples"], rows),
        "surprise": plots.surprise(images, model.surprise(images)),
        "training": plots.training(model.history_),
    }
    plots.write(figures, folder)
    return 0


def _counter(args: argparse.Namespace, total: int) -> Any:
    return Counter("images", quiet=args.quiet, total=total)
