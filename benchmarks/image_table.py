"""The tables of docs/image-models.md: runs on images, and halves given halves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import results
from markdown_table import minus, table
from results import Record


def image_tables(folder: Path) -> str:
    """Returns one line per run on images, and one for each half that was hidden."""
    test = "bits per dimension, test"
    head = ("images", "network", "head", "minutes", test, "validation", "weights", "epochs")
    runs = table(head, map(_image_line, results.read(folder, "images-*.json")))
    return "\n\n".join([runs, *map(_halves, results.read(folder, "image-halves.json"))])


def _image_line(run: Record) -> tuple[str, ...]:
    bits = f"{run['test_bits_per_dim']:.3f} ± {run['two_standard_errors']:.3f}"
    return (
        run["images_of"],
        "windows" if run.get("network") == "windows" else "convolutions",
        f"{run['head']} ({' × '.join(map(str, run['settings']['pnn']))})",
        f"{run['minutes']:g}",
        f"{bits} ({run['test_images']:,} images)",
        f"{run['validation_bits_per_dim']:.3f}",
        f"{run['parameters']:,}",
        f"{run['epochs']:.2f}",
    )


def _halves(run: Record) -> str:
    found = run["results"]
    about = (
        f"Random halves of {found['images']['test']} digits given the others, mean nats of an "
        f"image: one joint model, by {found['particles']} particles, beside one that learned for "
        f"this half only ({found['minutes']:g} minutes each):"
    )
    head = ("mask", "joint model", "model of the mask", "joint less the other", "median ESS")
    return f"{about}\n\n{table(head, _mask_lines(found['masks']))}"


def _mask_lines(masks: Iterable[Record]) -> Iterable[tuple[str, ...]]:
    for k, one in enumerate(masks):
        yield (
            f"{k + 1}",
            minus(f"{one['joint']:.2f}"),
            minus(f"{one['mask']:.2f} ({one['model_of_the_mask']})"),
            minus(f"{one['ahead']:+.2f} ± {one['two_standard_errors']:.2f}"),
            f"{one['median_effective_sample_size']:.0f}",
        )
