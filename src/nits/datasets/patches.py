"""BSDS300: grey patches of natural images, 8 × 8 pixels, drawn as by Uria et al. (2013)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator
from numpy.typing import NDArray

from nits.datasets.cache import cached
from nits.datasets.source import data_folder
from nits.datasets.split import Split

VERSION = 1
SIDE = 8
VALIDATION_IMAGES = 20
SIZES = (1_000_000, 50_000, 250_000)
BLOCK = 65536
COLUMNS = tuple(f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE))[:-1]

Pixels = NDArray[np.uint8]


def bsds300(
    root: Path | None = None,
    *,
    cache: Path | None = None,
    sizes: tuple[int, int, int] = SIZES,
    seed: int = 0,
) -> Split:
    """Returns BSDS300, 63 columns: patches to train on, to validate and to test.

    Twenty of the training images, drawn at random, give the validation patches only. Each part has
    a generator of its own, so its rows do not depend on the sizes of the others.

    root: Folder with BSDS300/images/{train,test}.
    sizes: Numbers of patches to train on, to validate and to test.
    """
    if min(sizes) < 1:
        raise ValueError(
            f"sizes must be three positive integers, but is {sizes}; leave it out for {SIZES}."
        )
    key = "-".join(["bsds300", f"v{VERSION}", *map(str, sizes), f"seed{seed}"])
    return cached(key, lambda: _prepare(root, sizes, seed), cache)


def _prepare(root: Path | None, sizes: tuple[int, int, int], seed: int) -> Split:
    choice, *streams = np.random.default_rng(seed).spawn(4)
    train, test = (image_paths(root, part) for part in ("train", "test"))
    if len(train) <= VALIDATION_IMAGES:
        raise ValueError(
            f"there must be more than {VALIDATION_IMAGES} training images, but there are "
            f"{len(train)}; docs/data.md says where to get them."
        )
    order = choice.permutation(len(train))
    own = [train[i] for i in sorted(order[:VALIDATION_IMAGES])]
    rest = [train[i] for i in sorted(order[VALIDATION_IMAGES:])]
    train_rows, validation_rows, test_rows = (
        residuals(draw([grey(path) for path in paths], size, rng), rng)
        for paths, size, rng in zip((rest, own, test), sizes, streams, strict=True)
    )
    return Split("bsds300", train_rows, validation_rows, test_rows, COLUMNS)


def image_paths(root: Path | None, part: str) -> list[Path]:
    """Returns the images of a part in the order of their names."""
    folder = data_folder(root, "BSDS300", "images", part)
    paths = sorted(folder.glob("*.jpg"))
    if not paths:
        raise FileNotFoundError(
            f"{folder} must hold jpg images, but holds none; docs/data.md says where to get them."
        )
    return paths


def grey(path: Path) -> Pixels:
    """Returns an image in Pillow's grey, (299 R + 587 G + 114 B) / 1000 rounded, shape (H, W)."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "images need Pillow, but it is not installed; run pip install 'nits[images]'."
        ) from None
    with Image.open(path) as image:
        return np.asarray(image.convert("L"))


def draw(images: Sequence[Pixels], n: int, rng: Generator) -> Pixels:
    """Returns n patches, shape (n, 64), each from a random image and a random place in it."""
    which = rng.integers(len(images), size=n)
    place = rng.random((n, 2))
    patches = np.empty((n, SIDE, SIDE), dtype=np.uint8)
    for index, image in enumerate(images):
        windows = sliding_window_view(image, (SIDE, SIDE))
        chosen = np.flatnonzero(which == index)
        top, left = (place[chosen] * windows.shape[:2]).astype(np.int64).T
        patches[chosen] = windows[top, left]
    return patches.reshape(n, SIDE * SIDE)


def residuals(patches: Pixels, rng: Generator) -> NDArray[np.float32]:
    """Returns z − mean(z) without its last pixel, shape (n, 63), z = (patch + uniform noise) / 256.

    The noise is float64 and added block by block, to save memory.
    """
    rows = np.empty((len(patches), SIDE * SIDE - 1), dtype=np.float32)
    for start in range(0, len(patches), BLOCK):
        block = patches[start : start + BLOCK]
        z = (block + rng.random(block.shape)) / 256
        rows[start : start + BLOCK] = (z - z.mean(axis=1, keepdims=True))[:, :-1]
    return rows
