"""Images that grow while they are drawn: in a file that is written again, and in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.images import arrays
from nits.training.progress import Counter, Drawn

SECONDS = 1.0
"""Between two writings of the file."""


def blocks(image: NDArray[np.uint8], width: int) -> Any:
    """Returns an image, shape (H, W) or (H, W, 3), as text: two rows of pixels in a line of it.

    width: The most characters of a line; the image is cut off there.
    """
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    colours = np.broadcast_to(image[..., None], (*image.shape, 3)) if image.ndim == 2 else image
    if len(colours) % 2:
        colours = np.concatenate([colours, colours[-1:]])
    text = Text(no_wrap=True, overflow="crop")
    for above, below in zip(colours[::2], colours[1::2], strict=True):
        for top, bottom in zip(above[:width], below[:width], strict=True):
            upper, lower = (Color.from_rgb(*map(int, each)) for each in (top, bottom))
            text.append("▀", Style(color=upper, bgcolor=lower))
        text.append("\n")
    return text


class Growing(Drawn):
    """The count of images drawn, and in a terminal the first of them as far as they are.

    write: What writes images to the file, once a second; None if it is written at the end.
    """

    def __init__(
        self, total: int, *, quiet: bool, write: Callable[[NDArray[np.uint8]], None] | None
    ) -> None:
        from rich.live import Live

        self.counter = Counter("images", quiet=quiet, total=total)
        self.console = self.counter.bar.console
        self.shown = not quiet and write is not None and sys.stderr.isatty()
        self.bar = (
            Live(self.counter.bar, console=self.console, transient=True)
            if self.shown
            else self.counter.bar
        )
        self.write, self.last = write, time.monotonic()

    def add(self, images: NDArray[np.uint8], share: float) -> None:
        """Takes all images so far, and how many more there are of them than before."""
        self.counter.add(share)
        if self.write is None or time.monotonic() - self.last < SECONDS:
            return
        self.write(images)
        self.show(images)
        self.last = time.monotonic()

    def show(self, images: NDArray[np.uint8]) -> None:
        """Draws the first images below the count, as many as fit side by side."""
        from rich.console import Group

        if self.shown:
            width = self.console.width
            fit = max(1, width // (images.shape[2] + 1))
            row = arrays.grid(images[:fit], columns=fit, gap=1)
            self.bar.update(Group(self.counter.bar, blocks(row, width)))
