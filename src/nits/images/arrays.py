"""Images as users have them: uint8 arrays (N, H, W) or (N, H, W, C), or a folder of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.images.rows import to_images, to_rows

Pixels = NDArray[np.uint8]
Shape = tuple[int, int, int]


def read(images: Any, shape: Shape | None = None, levels: int = 256) -> Pixels:
    """Returns images as uint8, shape (N, C, H, W).

    shape: C, H and W that the images must have, if any.
    levels: A number that all values must be below.
    """
    if isinstance(images, str | Path):
        from nits.datasets.images import read_folder

        pixels = read_folder(Path(images))[1]
    else:
        pixels = _from_array(images)
    if shape is not None and pixels.shape[1:] != shape:
        raise ValueError(
            f"images must have {_words(shape)}, as in training, "
            f"but have {_words(pixels.shape[1:])}; resize or convert them."
        )
    if int(pixels.max()) >= levels:
        raise ValueError(
            f"images must hold values below {levels}, but hold {pixels.max()}; "
            "fit a model with more levels."
        )
    return pixels


def _from_array(images: Any) -> Pixels:
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else np.asarray(images)
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)):
        raise ValueError(
            "images must have shape (N, H, W) or (N, H, W, C) with 1 or 3 channels, "
            f"but have {array.shape}; move the channels to the end."
        )
    if 0 in array.shape:
        raise ValueError(
            f"there must be at least one image of one pixel, but the shape is {array.shape}."
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(f"images must be uint8, but are {array.dtype}; convert them.")
    if array.dtype != np.uint8:
        # The comparison is false for NaN, too.
        if not ((array >= 0) & (array <= 255) & (array == np.floor(array))).all():
            raise ValueError(
                "images must hold integers from 0 to 255, but hold other values; "
                "convert values in [0, 1] with (255 * images).round().astype('uint8')."
            )
        array = array.astype(np.uint8)
    pixels = array[:, None] if array.ndim == 3 else array.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pixels)


def _words(shape: tuple[int, ...]) -> str:
    channels, height, width = shape
    return f"{height} × {width} pixels with {channels} channel{'s' if channels > 1 else ''}"


def rows(pixels: Pixels) -> Tensor:
    """Returns images, shape (N, C, H, W), as rows of float32."""
    writable = np.require(pixels, requirements="W")  # torch warns of arrays that are not
    return to_rows(torch.from_numpy(writable))


def pictures(numbers: Tensor, shape: Shape) -> NDArray[Any]:
    """Returns rows as (N, H, W), or (N, H, W, C) if there are several channels."""
    return as_given(to_images(numbers, shape).numpy())


def as_given(images: NDArray[Any]) -> NDArray[Any]:
    """Returns images, shape (N, C, H, W), as (N, H, W), or (N, H, W, C) if C is not 1."""
    if images.shape[1] == 1:
        return images[:, 0]
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1))


def known_columns(known: Any, shape: Shape, count: int) -> Tensor:
    """Returns which columns of rows are known, shape (N, D), from which pixels are.

    known: Shape (H, W) for all images alike, or (N, H, W).
    count: N.
    """
    array = known.detach().cpu().numpy() if isinstance(known, Tensor) else np.asarray(known)
    if array.shape not in (shape[1:], (count, *shape[1:])) or array.dtype != np.bool_:
        raise ValueError(
            f"mask must be an array of booleans of shape {shape[1:]}, or of {count} such masks, "
            f"but is {array.dtype} of shape {array.shape}."
        )
    pixels = torch.from_numpy(np.ascontiguousarray(array)).reshape(-1, shape[1] * shape[2])
    return pixels.repeat_interleave(shape[0], 1).expand(count, -1)


def grid(images: NDArray[Any], columns: int | None = None, gap: int = 2) -> Pixels:
    """Returns one image with all images, shape (N, H, W) or (N, H, W, C), side by side on white."""
    count, height, width = images.shape[:3]
    columns = columns or max(1, round((count * height / width) ** 0.5))
    lines = -(-count // columns)
    size = (lines * (height + gap) + gap, columns * (width + gap) + gap, *images.shape[3:])
    whole = np.full(size, 255, np.uint8)
    for place, image in enumerate(images):
        i, j = divmod(place, columns)
        top, left = gap + i * (height + gap), gap + j * (width + gap)
        whole[top : top + height, left : left + width] = image
    return whole
