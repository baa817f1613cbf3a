"""The symmetries of images: mirrored, turned, or both."""

from __future__ import annotations

import torch
from torch import Tensor


def symmetries(height: int, width: int, channels: int = 1) -> list[list[int]]:
    """Returns the orders of an image's columns under its symmetries, for `nits.Symmetric`.

    Eight of a square, four of another rectangle; the first changes nothing.

    >>> import nits
    >>> [order for order in nits.images.symmetries(1, 3)][:2]
    [[0, 1, 2], [2, 1, 0]]
    """
    grid = torch.arange(height * width).view(height, width)
    turned = [grid, grid.t()] if height == width else [grid]
    every = [one for image in turned for one in _mirrored(image)]
    columns = [
        pixels.flatten().unsqueeze(1) * channels + torch.arange(channels) for pixels in every
    ]
    found: list[list[int]] = []
    for order in (each.flatten().tolist() for each in columns):
        if order not in found:  # of a single row, two are the same
            found.append(order)
    return found


def _mirrored(grid: Tensor) -> list[Tensor]:
    return [grid, grid.flip(1), grid.flip(0), grid.flip(0, 1)]
