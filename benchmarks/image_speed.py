"""Times the sampling of images with cached activations against the whole network for every channel.

    python benchmarks/image_speed.py
        → benchmarks/results/image_speed.json

Both draw the same pixels from the same uniform numbers. The plain way is timed over the first
columns only, since each costs it the same; the cached way is timed over the same columns and over
whole images.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import measure
import torch
from torch import Tensor

from nits import NITS
from nits.heads import Quantized
from nits.weights import SIZES

SHAPES = {"28 × 28": (1, 28, 28), "32 × 32 × 3": (3, 32, 32)}


def model_of(shape: tuple[int, int, int]) -> NITS:
    """Returns the small model with random weights: a network that is not constant."""
    torch.manual_seed(0)
    return NITS.conv(shape, Quantized(0.0, 1.0, 256), size=SIZES["small"]).eval()


def plain(model: NITS, u: Tensor, columns: int) -> Tensor:
    """Draws the first columns of rows, with the whole network for each."""
    x = torch.zeros_like(u)
    for position in range(columns):
        theta = model._theta(model.described(x), None).split(model.weights.outputs)[position]
        x[:, position] = model._invert(position, theta, u[:, position])
    return x[:, :columns]


def cached(model: NITS, u: Tensor, columns: int) -> Tensor:
    """Draws the first columns of rows as `NITS.from_uniform` does."""
    stepper, found = model.weights.stepper(len(u)), []
    for position in range(columns):
        found.append(model._invert(position, stepper.theta(), u[:, position]))
        stepper.feed(model.reading.column(position, found[-1]))
    return torch.stack(found, 1)


def measured(shape: tuple[int, int, int], images: int, columns: int, rounds: int) -> dict[str, Any]:
    """Returns seconds per column of both ways, their ratio, and how many pixels differ."""
    model = model_of(shape)
    u = torch.rand(images, model.columns, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        different = int((plain(model, u, columns) != cached(model, u, columns)).sum())
        programs: dict[str, Callable[[], object]] = {
            "plain": lambda: plain(model, u, columns),
            "cached": lambda: cached(model, u, columns),
        }
        times = measure.alternately(programs, rounds)
        begun = time.perf_counter()
        model.from_uniform(u)
        whole = time.perf_counter() - begun
    per_column = {
        name: measure.spread([t / columns for t in found]) for name, found in times.items()
    }
    return {
        "images": images,
        "columns_timed": columns,
        "columns": model.columns,
        "pixels_compared": images * columns,
        "pixels_different": different,
        "seconds_per_column": per_column,
        "plain_over_cached": measure.ratios(times, "plain", "cached"),
        "whole_images_seconds": whole,
        "plain_per_column_over_cached_whole": per_column["plain"]["median"] * model.columns / whole,
    }


def main(argv: list[str] | None = None) -> int:
    """Measures both shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--columns", type=int, default=24, help="that the plain way is timed over")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    found = {
        name: measured(shape, args.images, args.columns, args.rounds)
        for name, shape in SHAPES.items()
    }
    for name, part in found.items():
        ratio = part["plain_per_column_over_cached_whole"]
        print(f"{name}: {ratio:.0f} × faster, {part['pixels_different']} pixels differ")
    print(f"written to {measure.write('image_speed', found)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
