"""Images in three parts, the checks that all loaders share, and images from a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]
Labelled = tuple[Pixels, Labels]

CLASSES = 10
VALIDATION = 5000
SUFFIXES = (".png", ".jpg", ".jpeg")
CHANNELS = {"L": 1, "RGB": 3}
"""Pillow's names of the modes that are accepted, and their channels."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images to train on, to validate and to test.

    train, validation, test: uint8, shape (N, C, H, W), read-only.
    train_labels, validation_labels, test_labels: int64, shape (N,), read-only; None without labels.

    >>> import nits, numpy
    >>> grey = numpy.zeros((4, 1, 8, 8), numpy.uint8)
    >>> nits.datasets.Images("mine", grey, grey, grey).train_labels is None
    True
    """

    name: str
    train: Pixels
    validation: Pixels
    test: Pixels
    train_labels: Labels | None = None
    validation_labels: Labels | None = None
    test_labels: Labels | None = None


def make_images(name: str, train: Labelled, test: Labelled, validation: int) -> Images:
    """Returns the published parts as `Images`.

    validation: Images at the end of train that are validation images instead.
    """
    pixels, labels = train
    test_pixels, test_labels = test
    if not 0 <= validation < len(pixels):
        raise ValueError(
            f"validation must be at least 0 and less than the {len(pixels)} training images, "
            f"but is {validation}; 0 leaves all for training."
        )
    for array in (pixels, labels, test_pixels, test_labels):
        array.setflags(write=False)
    n = len(pixels) - validation
    return Images(name, pixels[:n], pixels[n:], test_pixels, labels[:n], labels[n:], test_labels)


def paired(pixels: Pixels, labels: Labels, where: str) -> Labelled:
    """Returns images and labels, after a check that each image has one of the ten labels."""
    if len(pixels) != len(labels):
        raise ValueError(
            f"{where} must have one label per image, but has {len(labels)} for {len(pixels)}; "
            "download it again."
        )
    strange = labels[(labels < 0) | (labels >= CLASSES)]
    if len(strange):
        raise ValueError(
            f"{where} must have labels from 0 to {CLASSES - 1}, but has {strange[0]}; "
            "download it again."
        )
    return pixels, labels


def check_md5(content: bytes, expected: str, where: str) -> None:
    """Raises an error unless `content` has the published MD5."""
    got = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if got != expected:
        raise ValueError(
            f"{where} must have the published MD5 {expected}, but has {got}; "
            "download it again, or pass check=False."
        )


def image_folder(
    path: Path, *, validation: int | None = None, test: int | None = None, seed: int | None = 0
) -> Images:
    """Returns the PNG and JPEG files of a folder, all grey or all RGB and of one size, unlabelled.

    path: Folder with the files; its subfolders are ignored.
    validation, test: Numbers of images to validate and to test; by default ⌊N/10⌋ each.
    seed: Of the shuffling before the images are divided; None keeps them in the order of names.
    """
    paths = _image_paths(path)
    n = len(paths)
    held = [n // 10 if size is None else size for size in (validation, test)]
    if min(held) < 0 or sum(held) >= n:
        raise ValueError(
            f"validation and test must be at least 0 and together less than the {n} images, "
            f"but are {held[0]} and {held[1]}; by default each is a tenth of them."
        )
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    pixels = _stack([paths[i] for i in order], first=paths[0])
    pixels.setflags(write=False)
    train, own, last = np.split(pixels, [n - sum(held), n - held[1]])
    return Images(Path(path).name, train, own, last)


def read_folder(path: Path) -> tuple[list[str], Pixels]:
    """Returns the names of a folder's PNG and JPEG files, and the images, shape (N, C, H, W)."""
    paths = _image_paths(path)
    return [each.name for each in paths], _stack(paths, first=paths[0])


def _image_paths(path: Path) -> list[Path]:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"path must be a folder of images, but there is no folder {folder}; correct the path."
        )
    paths = sorted(
        each for each in folder.iterdir() if each.suffix.lower() in SUFFIXES and each.is_file()
    )
    if not paths:
        raise FileNotFoundError(
            f"{folder} must hold {', '.join(SUFFIXES)} images, but holds none; correct the path."
        )
    return paths


def _stack(paths: Sequence[Path], *, first: Path) -> Pixels:
    """Returns the images at `paths`, shape (N, C, H, W), all of the size of `first`."""
    pillow = _pillow()
    shape = _picture(first, pillow).shape
    pixels = np.empty((len(paths), *shape), dtype=np.uint8)
    for place, path in enumerate(paths):
        image = _picture(path, pillow)
        if image.shape != shape:
            raise ValueError(
                f"{path} must have the channels, height and width of {first.name}, "
                f"{_product(shape)}, but has {_product(image.shape)}; make all images alike."
            )
        pixels[place] = image
    return pixels


def _product(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _picture(path: Path, pillow: ModuleType) -> Pixels:
    """Returns an image as stored, shape (C, H, W)."""
    try:
        with pillow.open(path) as image:
            mode = image.mode
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        # Pillow's own message may repeat the path.
        raise ValueError(
            f"{path} must be a PNG or JPEG image, but cannot be read ({type(error).__name__}); "
            "replace or remove it."
        ) from None
    if mode not in CHANNELS:
        raise ValueError(
            f"{path} must be grey or RGB with 8 bits per channel, but has Pillow's mode {mode}; "
            "convert it."
        )
    height, width = pixels.shape[:2]
    return pixels.reshape(height, width, CHANNELS[mode]).transpose(2, 0, 1)


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "images need Pillow, but it is not installed; run pip install 'nits[images]'."
        ) from None
    return Image
