"""Images as rows: the channels of pixels in reading order, which is how NITS-CONV models them."""

from __future__ import annotations

import torch
from torch import Tensor


def to_rows(
    images: Tensor, present: Tensor | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Returns images, shape (N, C, H, W), as rows, shape (N, D).

    present: Pixels that the rows have, shape (H, W); all by default.

    >>> import nits, torch
    >>> nits.images.to_rows(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 48])
    """
    if images.dim() != 4:
        raise ValueError(
            f"images must have shape (N, C, H, W), but have {tuple(images.shape)}; "
            "add a dimension for channels with images[:, None]."
        )
    pixels = images.permute(0, 2, 3, 1).flatten(1, 2)  # (N, H W, C)
    return (pixels if present is None else pixels[:, present.flatten().bool()]).flatten(1).to(dtype)


def to_images(rows: Tensor, shape: tuple[int, int, int], present: Tensor | None = None) -> Tensor:
    """Returns rows, shape (N, D), as images, shape (N, C, H, W).

    shape: C, H and W.
    present: Pixels that the rows have, shape (H, W); all by default. The others become zero.

    >>> import nits, torch
    >>> nits.images.to_images(torch.zeros(2, 48), (3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """
    channels, height, width = shape
    there = torch.ones(height, width) if present is None else present
    count = channels * int(there.bool().sum())
    if rows.dim() != 2 or rows.shape[1] != count:
        raise ValueError(
            f"rows must have shape (N, {count}) for images of {channels} × {height} × {width}, "
            f"but have {tuple(rows.shape)}; pass the shape of their images."
        )
    pixels = rows.new_zeros(len(rows), height * width, channels)
    pixels[:, there.flatten().bool()] = rows.unflatten(1, (-1, channels))
    images: Tensor = pixels.unflatten(1, (height, width)).permute(0, 3, 1, 2)
    return images
