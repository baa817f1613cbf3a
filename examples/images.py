"""Learns the exact probability of small images, and shows samples, completions and surprise.

    python examples/images.py     # scikit-learn's digits, 8 × 8, four minutes
    python examples/images.py --fashion-mnist FOLDER --minutes 60

Writes out/images-samples.png (images beside samples), out/images-completions.png (lower halves
drawn anew) and out/images-surprise.png (bits per pixel of images, and of two that are out of place:
upside down, with a line through them).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nits import NITSImages, datasets
from nits.cli import plots
from nits.weights import ConvSize

OUT = Path(__file__).parents[1] / "out"
SHOWN = 32


def digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8], int]:
    """Returns scikit-learn's digits for training and testing, and their number of grey levels."""
    from sklearn.datasets import load_digits

    images = load_digits().images.astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(images))
    return images[order[:-300]], images[order[-300:]], 17


def fashion(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int]:
    """Returns the same of Fashion-MNIST."""
    images = datasets.fashion_mnist(folder)
    return images.train[:, 0], images.test[:, 0], 256


def out_of_place(image: NDArray[np.uint8], levels: int) -> NDArray[np.uint8]:
    """Returns the image upside down, with a bright line through a row of it."""
    found = image[::-1].copy()
    found[len(found) // 4] = levels - 1
    return found


def main() -> None:
    """Trains, then draws the three figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fashion-mnist", type=Path, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=4.0)
    args = parser.parse_args()
    train, test, levels = fashion(args.fashion_mnist) if args.fashion_mnist else digits()
    model = NITSImages(
        size=ConvSize(filters=32, blocks=6, dilations=(1, 2), dropout=0.1),
        levels=levels,
        max_minutes=args.minutes,
        random_state=0,
        verbose=True,
    ).fit(train)
    print(f"held-out images: {model.bits_per_dim(test[:300]):.3f} bits per dimension")

    bright = 255 // (levels - 1)
    height, width = test.shape[1:]
    upper = np.arange(height)[:, None].repeat(width, 1) < height // 2
    some = test[:SHOWN]
    samples = model.sample(SHOWN, random_state=1)
    filled = [model.complete(some, upper, random_state=k) for k in (0, 1)]
    strange = np.stack([*test[:5], out_of_place(test[0], levels), out_of_place(test[1], levels)])
    OUT.mkdir(exist_ok=True)
    plots.write(
        {
            "images-samples": plots.image_rows(
                ["images", "samples"], [some * bright, samples * bright]
            ),
            "images-completions": plots.image_rows(
                ["images", "lower half drawn", "and once more"],
                [part * bright for part in (some, *filled)],
            ),
            "images-surprise": plots.surprise(strange * bright, model.surprise(strange)),
        },
        OUT,
    )


if __name__ == "__main__":
    main()
