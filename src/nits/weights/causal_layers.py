"""Causal convolutions of whole images, which read up and to the left.

There are two streams, as in PixelCNN++: *down* reads the rows above, *across* these and the pixels
to the left. A layer of the first reads a row and the row `dilation` above it, one of the second two
pixels of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.weights.block_linear import dropout


def both_signs(x: Tensor, dim: int = 1) -> Tensor:
    """Returns elu(x) and elu(−x), side by side: F features become 2F."""
    return functional.elu(torch.cat([x, -x], dim), inplace=True)


def _normal(
    shape: tuple[int, ...], deviation: float, generator: torch.Generator | None
) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, generator=generator) * deviation)


class Down(nn.Module):
    """A convolution over two rows, a pixel's and the one `dilation` above, and three columns."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        dilation: int = 1,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dilation = dilation
        self.weight = _normal((outputs, inputs, 2, 3), gain / (6 * inputs) ** 0.5, generator)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Maps images, shape (N, inputs, H, W), to (N, outputs, H, W)."""
        d = self.dilation
        return functional.conv2d(
            functional.pad(x, (d, d, d, 0)), self.weight, self.bias, dilation=d
        )


class Across(nn.Module):
    """A 2 × 2 convolution over a pixel and those `dilation` above it, to its left, and both."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        dilation: int = 1,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dilation = dilation
        self.weight = _normal((outputs, inputs, 2, 2), gain / (4 * inputs) ** 0.5, generator)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Maps images, shape (N, inputs, H, W), to (N, outputs, H, W)."""
        d = self.dilation
        return functional.conv2d(
            functional.pad(x, (d, 0, d, 0)), self.weight, self.bias, dilation=d
        )


class Pointwise(nn.Module):
    """A linear map of each pixel's features."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight = _normal((outputs, inputs), max(inputs, 1) ** -0.5, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, inputs) or (N, inputs, H, W) to as many outputs."""
        if x.dim() == 4:
            return functional.conv2d(x, self.weight[:, :, None, None])
        return x @ self.weight.t()


class Gated(nn.Module):
    """A gated residual block: x + a · σ(b), where (a, b) is the output of two convolutions.

    side: Number of features of the other stream and of the context, added between the two.
    """

    def __init__(
        self,
        kind: type[Down] | type[Across],
        filters: int,
        dilation: int,
        side: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        # Down or Across, as is the second
        self.first: Any = kind(2 * filters, filters, dilation, generator=generator)
        self.side = Pointwise(side, filters, generator) if side else None
        # The block starts close to the identity: its second convolution is small.
        self.second: Any = kind(2 * filters, 2 * filters, 1, 0.1, generator)

    def forward(
        self,
        x: Tensor,
        side: Tensor | None,
        probability: float,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Maps x, shape (N, F, H, W), with side features, (N, S, H, W), to the same shape.

        probability, generator: Of dropout.
        """
        h = self.between(self.first(both_signs(x)), side)
        return gate(x, self.second(dropout(h, probability, self.training, generator)))

    def between(self, h: Tensor, side: Tensor | None) -> Tensor:
        """Adds the side features; returns the input of the second convolution."""
        if self.side is not None and side is not None:
            h = h + self.side(side)
        return both_signs(h)


def gate(x: Tensor, both: Tensor, dim: int = 1) -> Tensor:
    """Returns x + a · σ(b)."""
    a, b = both.chunk(2, dim)
    return torch.addcmul(x, a, torch.sigmoid(b))


def gated(blocks: nn.ModuleList) -> Iterator[Gated]:
    """Yields the blocks with their type."""
    return (block for block in blocks if isinstance(block, Gated))


def neighbours(x: Tensor) -> list[Tensor]:
    """Returns images moved by one pixel: neighbours to the left, above left, above, above right."""
    left, right = shifted_right(x), functional.pad(x[:, :, :, 1:], (0, 1))
    return [left, shifted_down(left), shifted_down(x), shifted_down(right)]


def shifted_down(x: Tensor) -> Tensor:
    """Moves images one row down; the first row is zero."""
    return functional.pad(x[:, :, :-1], (0, 0, 1, 0))


def shifted_right(x: Tensor) -> Tensor:
    """Moves images one pixel to the right; the first column is zero."""
    return functional.pad(x[:, :, :, :-1], (1, 0))


def at(outputs: list[Tensor], earlier: int | None) -> Tensor | None:
    """Returns the output of an earlier block, or None if there is no shortcut."""
    return None if earlier is None else outputs[earlier]


def beside(*parts: Tensor | None) -> Tensor | None:
    """Returns the parts that are not None, concatenated."""
    given = [part for part in parts if part is not None]
    return torch.cat(given, 1) if given else None
