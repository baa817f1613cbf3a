"""The last stage of NITS-CONV: from the features of pixels to the weights θ of their channels.

θ of a channel comes from what the streams say and, in straight lines, from the four neighbours
before the pixel and its own channels before. The centres b of the PNN's first layer are not put out
as they are but as offsets β from a straight-line guess r of the channel by those neighbours, in
widths 1/W of their units:

    b = r + β / W,    hence    z = W (x − r) − β                                             (20)

A unit as narrow as a grey level then still follows the pixels around it, and a step of training
that moves β by some amount moves z by the same, however steep the unit is. The guess itself is
fitted once and not trained: where units are steep, its smallest move would be felt.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.pnn import initial
from nits.pnn.plain import log_weights
from nits.weights.causal_layers import Pointwise

SPREAD = 0.25
"""How many values, evenly over the range of what a guess leaves over, are added to those to start from."""


class PixelTheta(nn.Module):
    """Maps what the streams put out and what is near to θ, for every channel of a pixel.

    channels: Of a pixel.
    inputs: Features of a channel.
    outputs: P, weights per channel.
    filters: Features of the stream.
    pixels: How many there are; each has a bias of its own.
    units: Units of the PNN's first layer, whose centres follow (20); 0 for heads that have none.
    """

    guess: Tensor

    def __init__(
        self, channels: int, inputs: int, outputs: int, filters: int, pixels: int, units: int
    ) -> None:
        super().__init__()
        self.inputs, self.units = inputs, units
        self.mix = Pointwise(2 * filters, channels * filters)
        self.before = nn.ModuleList(Pointwise(c * inputs, filters) for c in range(1, channels))
        self.weight = nn.Parameter(
            torch.randn(channels, outputs, 2 * filters) * 0.5 / (2 * filters) ** 0.5
        )
        near = [4 * (channels * inputs + 1) + c * inputs for c in range(channels)]
        self.direct = nn.ParameterList(torch.randn(outputs, n) * 0.1 / n**0.5 for n in near)
        self.bias = nn.Parameter(torch.zeros(pixels, channels, outputs))
        self.register_buffer("guess", torch.zeros(channels, near[-1] + 1) if units else None)

    def forward(self, c: int, h: Tensor, near: Tensor, bias: Tensor) -> Tensor:
        """Maps features of channel c, shape (…, F, N), to its weights, shape (…, P, N).

        near: What the neighbours and then the pixel's own channels are, shape (…, n, N).
        bias: That of the pixels, shape (…, P).
        """
        both = functional.elu(torch.cat([h, -h], -2))
        direct: Tensor = self.direct[c]
        seen = near[..., : direct.shape[1], :]
        theta = self.weight[c] @ both + direct @ seen + bias.unsqueeze(-1)
        return self._placed(c, theta, seen) if self.units else theta

    def _placed(self, c: int, theta: Tensor, seen: Tensor) -> Tensor:
        """Puts the centres where (20) has them."""
        slopes, offsets, rest = theta.split(
            [self.units, self.units, theta.shape[-2] - 2 * self.units], -2
        )
        guess = self.guess[c, None, : seen.shape[-2]] @ seen + self.guess[c, -1]
        return torch.cat([slopes, guess + offsets * torch.exp(-log_weights(slopes)), rest], -2)

    def start_at(self, theta: Tensor) -> None:
        """Makes θ a constant, shape (pixels, C, P); the weights are free to grow from zero."""
        with torch.no_grad():
            for weight in (self.weight, *self.direct, *([self.guess] if self.units else [])):
                weight.zero_()
            slopes, centres, rest = theta.split(
                [self.units, self.units, theta.shape[-1] - 2 * self.units], -1
            )
            offsets = centres * torch.exp(log_weights(slopes))
            self.bias.copy_(torch.cat([slopes, offsets, rest], -1))

    def start_from(self, points: Tensor, near: Tensor, hidden: tuple[int, ...]) -> None:
        """Starts with the best straight-line guess, and PNNs that follow what it leaves over of all pixels.

        points: Where the values lie on the support, shape (pixels, C, N).
        near: See `forward`, shape (pixels, n, N).
        """
        theta, guess = [], torch.zeros_like(self.guess)
        for c, direct in enumerate(self.direct):
            seen = near[:, : direct.shape[1]].movedim(1, -1).flatten(0, 1)
            found, left_over = straight_line(seen, points[:, c].flatten())
            guess[c, : len(found) - 1], guess[c, -1] = found[:-1], found[-1]
            theta.append(initial.from_quantiles(_widened(left_over), hidden))
        self.start_at(torch.stack(theta).expand(len(self.bias), -1, -1))
        self.guess.copy_(guess)


def straight_line(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Returns coefficients of y, shape (N,), by x, shape (N, n), and a constant; and what they leave over."""
    full = torch.cat([x, torch.ones_like(x[:, :1])], 1).double()
    # The least of all solutions where neighbours depend on one another, as flags of the edges do.
    solution = torch.linalg.pinv(full.t() @ full, hermitian=True) @ (full.t() @ y.double())
    return solution.to(x), (y - full @ solution).to(x)


def _widened(values: Tensor) -> Tensor:
    """Adds values spread evenly over the range, so that no unit starts too narrow to learn from outliers."""
    even = torch.linspace(
        0, 1, max(2, int(SPREAD * len(values))), dtype=values.dtype, device=values.device
    )
    low, high = values.min(), values.max()
    return torch.cat([values, low + (high - low) * even])
