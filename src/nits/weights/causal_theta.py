"""The last stage of NITS-CONV: from the features of pixels to the weights θ of their channels.

θ of a channel is a function of the streams' output plus a linear function of the four neighbours
before the pixel and of its own earlier channels. For the centres b of the PNN's first layer the
network returns offsets β from a linear prediction r of the channel, in widths 1/W of the units:

    b = r + β / W,    hence    z = W (x − r) − β                                             (20)

So a unit as narrow as a grey level still follows the pixels around it, and a training step that
moves β moves z by as much, however steep the unit is. The prediction is fitted once, by least
squares, and not trained: where units are steep, its smallest change would be a large one in z.

The prediction is kept within the range of the training values. Beyond it, narrow units would have
next to no mass inside of the support and the broadest one would take all of it: a pixel would be
noise, and so would be those that are predicted from it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.pnn import initial
from nits.pnn.plain import log_weights
from nits.weights.causal_layers import Pointwise

EVEN_SHARE = 0.25
"""Evenly spaced values that are added to the residuals of the prediction, as a share of their
number."""


class PixelTheta(nn.Module):
    """Maps the streams' output and the values nearby to θ, for every channel of a pixel.

    channels: Channels of a pixel.
    inputs: Features of a channel.
    outputs: P, PNN weights of a channel.
    filters: Features of the stream.
    pixels: Number of pixels; each has a bias of its own.
    units: Units of the PNN's first layer, whose centres follow (20); 0 for heads without a PNN.
    generator: What initial weights are drawn from; by default torch's global one.
    """

    guess: Tensor
    reach: Tensor

    def __init__(  # noqa: PLR0913 - sizes, all of which the data decide
        self,
        channels: int,
        inputs: int,
        outputs: int,
        filters: int,
        pixels: int,
        units: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.units = inputs, units
        self.mix = Pointwise(2 * filters, channels * filters, generator)
        self.before = nn.ModuleList(
            Pointwise(c * inputs, filters, generator) for c in range(1, channels)
        )
        drawn = torch.randn(channels, outputs, 2 * filters, generator=generator)
        self.weight = nn.Parameter(drawn * 0.5 / (2 * filters) ** 0.5)
        near = [4 * (channels * inputs + 1) + c * inputs for c in range(channels)]
        self.direct = nn.ParameterList(
            torch.randn(outputs, n, generator=generator) * 0.1 / n**0.5 for n in near
        )
        self.bias = nn.Parameter(torch.zeros(pixels, channels, outputs))
        self.register_buffer("guess", torch.zeros(channels, near[-1] + 1) if units else None)
        reach = torch.tensor([-math.inf, math.inf])  # of the guess
        self.register_buffer("reach", reach if units else None)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Lets the guess go anywhere if the model was saved before it had a reach."""
        if self.units and f"{prefix}guess" in state:
            state.setdefault(f"{prefix}reach", torch.tensor([-math.inf, math.inf]))
        super()._load_from_state_dict(state, prefix, *rest)

    def forward(self, c: int, h: Tensor, near: Tensor, bias: Tensor) -> Tensor:
        """Maps features of channel c, shape (…, F, N), to its weights, shape (…, P, N).

        near: Features of the neighbours and then of the pixel's own channels, shape (…, n, N).
        bias: Biases of the pixels, shape (…, P).
        """
        both = functional.elu(torch.cat([h, -h], -2))
        direct: Tensor = self.direct[c]
        seen = near[..., : direct.shape[1], :]
        theta = self.weight[c] @ both + direct @ seen + bias.unsqueeze(-1)
        return self._placed(c, theta, seen) if self.units else theta

    def _placed(self, c: int, theta: Tensor, seen: Tensor) -> Tensor:
        """Returns θ with centres b = r + β / W in place of the offsets β, equation (20)."""
        slopes, offsets, rest = theta.split(
            [self.units, self.units, theta.shape[-2] - 2 * self.units], -2
        )
        guess = self.guess[c, None, : seen.shape[-2]] @ seen + self.guess[c, -1]
        guess = guess.clamp(*self.reach)
        return torch.cat([slopes, guess + offsets * torch.exp(-log_weights(slopes)), rest], -2)

    def guesses(self, near: Tensor) -> Tensor:
        """Returns the guesses r of all channels, shape (…, C), from features nearby, (…, n).

        `_placed` computes those of one channel.
        """
        seen = torch.tensor([direct.shape[1] for direct in self.direct], device=near.device)
        lines, constants = self.guess[:, :-1], self.guess[:, -1]
        lines = lines * (torch.arange(lines.shape[1], device=near.device) < seen[:, None])
        found = near[..., : lines.shape[1]] @ lines.t() + constants
        return found.clamp(*self.reach)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta, shape (pixels, C, P), whatever the input."""
        with torch.no_grad():
            for weight in (self.weight, *self.direct, *([self.guess] if self.units else [])):
                weight.zero_()
            slopes, centres, rest = theta.split(
                [self.units, self.units, theta.shape[-1] - 2 * self.units], -1
            )
            offsets = centres * torch.exp(log_weights(slopes))
            self.bias.copy_(torch.cat([slopes, offsets, rest], -1))

    def start_from(self, points: Tensor, near: Tensor, hidden: tuple[int, ...]) -> None:
        """Starts with the best linear prediction, and PNNs that follow its residuals of all pixels.

        points: The values as points of the support, shape (pixels, C, N).
        near: See `forward`, shape (pixels, n, N).
        """
        theta, guess = [], torch.zeros_like(self.guess)
        for c, direct in enumerate(self.direct):
            seen = near[:, : direct.shape[1]].movedim(1, -1).flatten(0, 1)
            found, residual = least_squares(seen, points[:, c].flatten())
            guess[c, : len(found) - 1] = found[:-1]
            guess[c, -1] = found[-1]
            theta.append(initial.from_quantiles(_widened(residual), hidden))
        self.start_at(torch.stack(theta).expand(len(self.bias), -1, -1))
        self.guess.copy_(guess)
        self.reach.copy_(torch.stack([points.min(), points.max()]))


def least_squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the regression coefficients of y, shape (N,), on x, shape (N, n), and the residuals.

    The constant comes last.
    """
    full = torch.cat([x, torch.ones_like(x[:, :1])], 1).double()
    # The solution of least norm: features are collinear, such as the masks along an edge.
    solution = torch.linalg.pinv(full.t() @ full, hermitian=True) @ (full.t() @ y.double())
    return solution.to(x), (y - full @ solution).to(x)


def _widened(values: Tensor) -> Tensor:
    """Adds evenly spaced values, so that no unit starts too narrow to learn from outliers."""
    count = max(2, int(EVEN_SHARE * len(values)))
    even = torch.linspace(0, 1, count, dtype=values.dtype, device=values.device)
    low, high = values.min(), values.max()
    return torch.cat([values, low + (high - low) * even])
