"""How large a network a file may ask for: about as large as the file is.

The checksum of a file has no key: whoever writes a file chooses every size in it. So each size is
held against the numbers that the file has for its weights before anything is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TIMES, SPARE = 16, 2**22
"""Numbers of the matrices of a model: so many times those of its file, and some. Of a masked matrix
a file has the entries that the mask keeps."""

COLUMNS = 2**18
"""Columns that any file may have: images have many without a weight of their own."""

BLOCKS, DILATION, REACH = 1000, 2**12, 2**10
"""The deepest network, the widest gaps in its convolutions, and the widest window."""

OVERHEAD = 2**14
"""Numbers that would take as much memory as the objects of a network without weights."""


class Allowance:
    """The numbers that may still be built of a file.

    numbers: How many the file holds.
    """

    def __init__(self, numbers: int) -> None:
        self.numbers = numbers
        self.left = TIMES * numbers + SPARE

    def take(self, count: int) -> None:
        """Counts numbers that are about to be built."""
        self.left -= count + OVERHEAD
        if self.left < 0:
            raise ValueError(
                f"it asks for a network of more than {TIMES * self.numbers + SPARE} numbers, "
                f"but has {self.numbers} for it"
            )

    def columns(self, count: int) -> int:
        """Checks a number of columns."""
        return size(count, "the number of columns", self.numbers + COLUMNS, least=1)

    def masked_mlp(
        self, about: dict[str, Any], inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Checks the sizes of a `MaskedMLP`."""
        hidden = size(about["hidden"], "hidden", self.numbers, least=1)
        blocks = size(about["blocks"], "blocks", BLOCKS)
        share(about["dropout"], "dropout")
        context = size(about["context"], "context", self.numbers)
        codes = about.get("codes")
        last = hidden * sum(outputs)
        if codes is not None:
            size(codes, "codes", self.numbers, least=1)
            last = codes * (hidden * len(outputs) + sum(outputs))
        self.take(hidden * (sum(inputs) + context + 2 * blocks * hidden) + last)

    def clusters(self, about: dict[str, Any], outputs: Sequence[int]) -> None:
        """Checks the sizes of a `Clusters`."""
        count = size(about["components"], "components", self.numbers, least=1)
        self.take(count * (len(outputs) ** 2 + sum(outputs)))

    def lines(self, about: dict[str, Any], inputs: Sequence[int]) -> None:
        """Checks the sizes of the lines of a `Guided`."""
        context = self.heard(about)
        for position in about["straight"]:
            size(position, "straight", context - 1)
        self.take(len(inputs) * (len(about["straight"]) + sum(inputs)))

    def heard(self, about: dict[str, Any]) -> int:
        """Checks which features of a context are heard; returns how many it has."""
        context = size(about["context"], "context", self.numbers)
        for position in about["heard"]:
            size(position, "heard", context - 1)
        return context

    def causal_conv(
        self, about: dict[str, Any], channels: Sequence[int], inputs: int, outputs: int
    ) -> None:
        """Checks the sizes of a `CausalConv`.

        about: Has a `size`, as `ConvSize` has it, and a `context`.
        channels: Channels, height and width of the images.
        inputs, outputs: Of one column.
        """
        filters, blocks, dilations, dropout = about["size"]
        share(dropout, "dropout")
        size(filters, "filters", self.numbers, least=1)
        size(blocks, "blocks", BLOCKS, least=1)
        for dilation in dilations:
            size(dilation, "a dilation", DILATION, least=1)
        context = size(about["context"], "context", self.numbers)
        read, _ = self._image(channels)
        self.take(filters * (read * (inputs + outputs) + blocks * (2 * filters + context)))

    def causal_window(self, about: dict[str, Any], shape: Sequence[int], outputs: int) -> None:
        """Checks the sizes of a `CausalWindow`.

        about: Has a `size`, as `WindowSize` has it, and a `context`.
        shape: Channels, height and width of the images.
        outputs: Of one column.
        """
        reach, hidden, blocks, dropout = about["size"]
        share(dropout, "dropout")
        size(reach, "reach", REACH, least=1)
        size(hidden, "hidden", self.numbers, least=1)
        size(blocks, "blocks", BLOCKS)
        context = size(about["context"], "context", self.numbers)
        channels, pixels = self._image(shape)
        window = 2 * reach * (reach + 1)
        read = channels * window + context + sum(shape)
        self.take(hidden * (read + 2 * blocks * hidden + channels * (outputs + channels)))
        # Each pixel has an index into its window, and there may be as many kinds of windows.
        kinds = min(pixels, (2 * reach + 1) * (reach + 1))
        self.take(pixels * window + kinds * channels * (channels * window + 1))

    def _image(self, shape: Sequence[int]) -> tuple[int, int]:
        """Checks channels, height and width; returns the channels and the number of pixels."""
        channels = size(shape[0], "the number of channels", self.numbers, least=1)
        height, width = (size(side, "a side of the images", COLUMNS, least=1) for side in shape[1:])
        self.columns(channels * height * width)
        return channels, height * width


def share(value: Any, name: str) -> None:
    """Refuses what is no probability that leaves something."""
    if type(value) not in (int, float) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a number in [0, 1), but is {repr(value)[:40]}")


def size(value: Any, name: str, most: int, least: int = 0) -> int:
    """Returns a size that a file has, if it is one."""
    if type(value) is not int or not least <= value <= most:
        told = repr(value)[:40]
        raise ValueError(f"{name} must be an integer from {least} to {most}, but is {told}")
    return value
