"""Where a pixel is expected, and how far off it may be, from the pixels before it.

The prediction r is linear in a window of the pixels before. It is fitted once, by least squares,
for each kind of window: near an edge some of the pixels are not there. Residuals are counted in
their standard deviation σ of that kind. What they were in the window says how rough the place is:

    e_j = (x_j − r_j) / σ_j,   S_i² = (c + Σ_k a_k e²_{i−k}) / (c + Σ_k a_k),   s_i = σ_i S_i   (45)

where i − k runs over the pixels of the window that are there, and e² is the mean of the channels.
a_k > 0 and c > 0 are learned. A channel also follows the earlier channels of its own pixel:

    r′_c = r_c + s_c Σ_{b<c} K_cb (x_b − r_b) / s_b                                          (46)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nits.weights.causal_theta import least_squares

RAW = 8
"""Nearest pixels that are read as they are, too: 0 and 255 are values of their own."""

DECAY, PRIOR = 0.7, 0.02
"""Of the initial weights a: how they fall with each pixel of distance; and the initial c."""

NONE = -30.0
"""Logarithm of a weight that is as good as none."""

LEAST = 1e-6
"""Least σ, relative to the standard deviation of all pixels."""


class Seen(NamedTuple):
    """What is known of m pixels of N images before their own values.

    window: The values of the pixels before, shape (C, D, m, N); 0 where there is none.
    guess: r, shape (C, m, N).
    spread: σ, shape (C, m, 1).
    log_scale: log S, shape (m, N).
    """

    window: Tensor
    guess: Tensor
    spread: Tensor
    log_scale: Tensor


class LocalScale(nn.Module):
    """Equations (45) and (46) for images of C channels.

    present: Mask of the pixels that have columns, shape (H, W).
    reach: Rows above, and pixels to each side, that the window has.
    """

    index: Tensor
    there: Tensor
    kind: Tensor
    lines: Tensor
    spread: Tensor
    chain: Tensor
    place: Tensor
    reach: Tensor

    def __init__(self, channels: int, present: Tensor, reach: int) -> None:
        super().__init__()
        self.channels = channels
        self.offsets = offsets = _offsets(reach)
        index, count = _index(present, offsets), int(present.sum())
        kind = torch.unique(index < count, dim=1, return_inverse=True)[1]
        self.kinds = int(kind.max()) + 1
        for name, t in (("index", index), ("there", index < count), ("kind", kind)):
            self.register_buffer(name, t, persistent=False)
        self.near = self._distances().argsort(stable=True)[:RAW].tolist()
        self.log_a = nn.Parameter(-DECAY * self._distances())
        self.log_c = nn.Parameter(torch.tensor(math.log(PRIOR)))
        read = channels * len(offsets)
        for name, t in (
            ("lines", torch.zeros(self.kinds, channels, read + 1)),
            ("spread", torch.ones(self.kinds, channels)),
            ("chain", torch.zeros(channels, channels)),
            ("place", torch.tensor([1.0, 0.0])),  # points of the support are a x + b
            ("reach", torch.tensor([-math.inf, math.inf])),  # of predictions, as such points
        ):
            self.register_buffer(name, t)
        self.read = read + channels * len(self.near) + 1

    def forget(self) -> None:
        """Makes r zero and s one."""
        self.lines.zero_()
        self.chain.zero_()
        self.spread.fill_(1.0)
        self.place.copy_(self.place.new_tensor([1.0, 0.0]))
        self.reach.copy_(self.reach.new_tensor([-math.inf, math.inf]))
        self.log_a.fill_(NONE)

    def seen(self, own: Tensor) -> Seen:
        """Returns what is known of all pixels, from their values, shape (C, pixels, N)."""
        values = _padded(own)
        blank = own.new_zeros(own.shape[1] + 1, own.shape[2])
        seen = self.seen_at(values, blank, slice(None))
        squares = _padded(self.squares(seen, own))
        return seen._replace(log_scale=self._log_scale(squares, slice(None)))

    def seen_at(self, values: Tensor, squares: Tensor, pixels: slice) -> Seen:
        """Returns what is known of some pixels from those before.

        values: Shape (C, pixels + 1, N), with zeros for the last, which stands for none.
        squares: e², shape (pixels + 1, N).
        """
        index = self.index[:, pixels]
        window = values.index_select(1, index.flatten()).unflatten(1, index.shape)
        lines = self.lines[self.kind[pixels]]  # (m, C, C D + 1)
        read = window.flatten(0, 1).transpose(0, 1)  # (m, C D, N)
        guess = torch.baddbmm(lines[..., -1:], lines[..., :-1], read).transpose(0, 1)
        spread = self.spread[self.kind[pixels]].t().unsqueeze(2)
        return Seen(window, guess, spread, self._log_scale(squares, pixels))

    def squares(self, seen: Seen, own: Tensor) -> Tensor:
        """Returns e² of pixels with values own, shape (C, m, N), as (m, N)."""
        errors = (own - seen.guess) / seen.spread
        return errors.square().mean(0)

    def _log_scale(self, squares: Tensor, pixels: slice) -> Tensor:
        """Returns log S, equation (45), shape (m, N)."""
        index, there = self.index[:, pixels], self.there[:, pixels].to(squares)
        a, c = self.log_a.exp(), self.log_c.exp()
        window = squares.index_select(0, index.flatten()).unflatten(0, index.shape)
        sums = (a @ window.flatten(1)).view(window.shape[1:])
        log_square: Tensor = (c + sums).log() - (c + a @ there).log().unsqueeze(1)
        return log_square / 2

    def window(self, seen: Seen, pixels: slice) -> Tensor:
        """Returns what a network reads, shape (read, m, N): differences from r in units of s."""
        scale = seen.spread * seen.log_scale.exp()
        apart = (seen.window - seen.guess.unsqueeze(1)) / scale.unsqueeze(1)
        apart = squashed(apart) * self.there[:, pixels].unsqueeze(2)
        raw = seen.window[:, self.near].flatten(0, 1)
        return torch.cat([apart.flatten(0, 1), raw, seen.log_scale.unsqueeze(0)])

    def errors(self, seen: Seen, own: Tensor) -> Tensor:
        """Returns (x − r) / s of channels, shape (C, m, N)."""
        return (own - seen.guess) / (seen.spread * seen.log_scale.exp())

    def placing(self, c: int, seen: Seen, errors: Tensor) -> tuple[Tensor, Tensor]:
        """Returns r′ and log s of channel c as points of the support, shape (m, 1, N) each.

        errors: Those of the channels before it, shape (c, m, N).
        """
        log_scale = seen.spread[c].log() + seen.log_scale
        guess = seen.guess[c]
        if c:
            follows = torch.einsum("b,bmn->mn", self.chain[c, :c], errors)
            guess = guess + follows * log_scale.exp()
        times, plus = self.place
        placed = (times * guess + plus).clamp(*self.reach)
        return placed.unsqueeze(1), (log_scale + times.log()).unsqueeze(1)

    def start_from(self, own: Tensor, points: Tensor) -> None:
        """Fits r, σ, K to values, shape (C, pixels, N), and their points of the support."""
        values = _padded(own)
        least = LEAST * own.std() + torch.finfo(own.dtype).tiny
        for kind in range(self.kinds):
            pixels = (self.kind == kind).nonzero().flatten()
            index = self.index[:, pixels]
            read = values[:, index].flatten(0, 1).flatten(1).t()  # (m N, C D)
            for c, target in enumerate(own[:, pixels].flatten(1)):
                found, residual = least_squares(read, target)
                self.lines[kind, c] = found
                self.spread[kind, c] = residual.std(correction=0).clamp_min(least)
        self.log_a.copy_(-DECAY * self._distances())
        self.log_c.fill_(math.log(PRIOR))
        seen = self.seen(own)
        errors = self.errors(seen, own).flatten(1)
        for c in range(1, self.channels):
            self.chain[c, :c] = least_squares(errors[:c].t(), errors[c])[0][:-1]
        found, _ = least_squares(own.reshape(-1, 1), points.reshape(-1))
        self.place.copy_(found)
        self.reach.copy_(torch.stack([points.min(), points.max()]))

    def _distances(self) -> Tensor:
        """Returns how far away the pixels of a window are, shape (D,)."""
        return torch.tensor([math.hypot(*offset) for offset in self.offsets])


def squashed(x: Tensor) -> Tensor:
    """Returns sign(x) log(1 + |x|), which networks bear however large x is."""
    return x.sign() * x.abs().log1p()


def _offsets(reach: int) -> list[tuple[int, int]]:
    """Returns the places of a window: rows above, and the pixels to the left."""
    above = [(i, j) for i in range(-reach, 0) for j in range(-reach, reach + 1)]
    return [*above, *((0, j) for j in range(-reach, 0))]


def _index(present: Tensor, offsets: list[tuple[int, int]]) -> Tensor:
    """Returns which of the pixels with columns lie at the offsets of each, (D, pixels).

    The number of pixels where there is none.
    """
    count = int(present.sum())
    number = torch.full(present.shape, count)
    number[present] = torch.arange(count)
    reach = max(abs(j) for _, j in offsets)
    around = nn.functional.pad(number, (reach, reach, reach, 0), value=count)
    rows, columns = present.nonzero().t()
    return torch.stack([around[rows + reach + i, columns + reach + j] for i, j in offsets])


def _padded(x: Tensor) -> Tensor:
    """Returns x, shape (…, pixels, N), with zeros for one pixel more."""
    return nn.functional.pad(x, (0, 0, 0, 1))
