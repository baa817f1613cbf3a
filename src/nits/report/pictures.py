"""The sections about a model of images: bits, samples, completions, and maps of surprise."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.images import arrays
from nits.images.estimator import NITSImages

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.float64]

SHOWN = 16
SURPRISING = 8
MOST_SCORED = 256
"""Images that are scored."""

WIDTH = 900
"""About the width of a picture of several images, in pixels."""

WARM = np.array([(0, 0, 4), (81, 18, 124), (183, 55, 121), (252, 137, 97), (252, 253, 191)])
"""Colours from few bits to many."""


@dataclass(frozen=True)
class Bits:
    """Bits per pixel and channel.

    held_out: Of images that training held out, as the model file has it.
    mean, error: Of the images given; a bound for a model of pixels with noise.
    alone: If each value had its share in these images, whatever its neighbours.
    uniform: If all values were alike.
    shares: Of each value in the images and in samples.
    count, drawn: How many images and samples there are.
    """

    held_out: float | None
    mean: float
    error: float
    bound: bool
    alone: float
    uniform: float
    shares: tuple[Numbers, Numbers]
    count: int
    drawn: int


@dataclass(frozen=True)
class Pictures:
    """Names of sets of images, and each set as one picture in a URL."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Surprise:
    """The images that need most bits, and maps of the bits of each pixel, as URLs.

    most: Bits of the brightest colour.
    highest, lowest: Bits per dimension of the first and the last image; least: of any image.
    """

    images: str
    maps: str
    most: float
    highest: float
    lowest: float
    least: float


class Album:
    """Images beside a model of them, and samples."""

    def __init__(self, model: NITSImages, images: Any, seed: int) -> None:
        if model.classes_ is not None:
            raise ValueError(
                "reports are on joint densities, but this model has labels; score it instead."
            )
        self.model, self.seed = model, seed
        pixels = arrays.read(images, model.shape_, model.levels)
        some = np.sort(np.random.default_rng(seed).permutation(len(pixels))[:MOST_SCORED])
        self.total = len(pixels)
        self.images: Pixels = arrays.as_given(pixels[some])
        self.samples: Pixels = model.sample(SHOWN, seed)
        nats = model.score_samples(self.images)
        self.bits: Numbers = -nats / (model.model_.columns * math.log(2))

    @property
    def words(self) -> str:
        """Which images they are."""
        if len(self.images) == self.total:
            return f"all {self.total:,} images"
        return f"{len(self.images):,} of {self.total:,} images (seed {self.seed})"


def bits(album: Album) -> Bits:
    """Returns bits per dimension of the images, and the shares of their values."""
    levels = album.model.levels
    shares = [
        np.bincount(pixels.ravel(), minlength=levels) / pixels.size
        for pixels in (album.images, album.samples)
    ]
    used = shares[0][shares[0] > 0]
    return Bits(
        album.model.held_out_,
        float(album.bits.mean()),
        float(album.bits.std() / len(album.bits) ** 0.5),
        album.model.dequantize is not None,
        float(-(used * np.log2(used)).sum()),
        math.log2(levels),
        (shares[0], shares[1]),
        len(album.images),
        len(album.samples),
    )


def pictures(album: Album) -> Pictures:
    """Returns images, completions of their upper halves, and samples."""
    images = album.images[:SHOWN]
    upper = np.zeros(album.model.shape_[1:], bool)
    upper[: album.model.shape_[1] // 2] = True
    drawn = album.model.complete(images, upper, album.seed)
    every = {"images": images, "lower half drawn anew": drawn, "samples": album.samples}
    scale = 255 // (album.model.levels - 1) if album.model.levels > 1 else 1
    return Pictures(tuple((name, url(row(some * np.uint8(scale)))) for name, some in every.items()))


def surprise(album: Album) -> Surprise:
    """Returns the images that need most bits, with maps."""
    order = np.argsort(-album.bits, kind="stable")[:SURPRISING]
    images = album.images[order]
    each = album.model.surprise(images)
    per_pixel = each if each.ndim == 3 else each.sum(3)
    most = max(4.0, float(np.quantile(per_pixel, 0.97)))  # one pixel may need hundreds of bits
    scale = 255 // (album.model.levels - 1) if album.model.levels > 1 else 1
    worst = album.bits[order]
    return Surprise(
        url(row(images * np.uint8(scale))),
        url(row(_coloured(per_pixel / most))),
        most,
        float(worst[0]),
        float(worst[-1]),
        float(album.bits.min()),
    )


def _coloured(heat: Numbers) -> Pixels:
    """Returns numbers from 0 to 1 as colours, shape (N, H, W, 3)."""
    at = np.clip(heat, 0, 1) * (len(WARM) - 1)
    parts = [np.interp(at, np.arange(len(WARM)), WARM[:, k]) for k in range(3)]
    return np.stack(parts, -1).astype(np.uint8)


def row(images: Pixels) -> Pixels:
    """Returns images side by side, in two rows if they are many, large enough to be seen."""
    columns = len(images) if len(images) <= SURPRISING else -(-len(images) // 2)
    zoom = max(1, WIDTH // (columns * (images.shape[2] + 2)))
    enlarged = images.repeat(zoom, 1).repeat(zoom, 2)
    return arrays.grid(enlarged, columns, gap=4)


def url(image: Pixels) -> str:
    """Returns an image, shape (H, W) or (H, W, 3), as a PNG in a URL."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, format="png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
