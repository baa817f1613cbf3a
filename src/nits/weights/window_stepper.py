"""`CausalWindow` evaluated one channel of one pixel at a time, as sampling needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from nits.weights.causal_window import CausalWindow


class WindowStepper:
    """Keeps the values and residuals of the pixels so far, from which each pixel has its window.

    values, squares: Of all pixels, and zeros for none; see `LocalScale.seen_at`.
    own: The channels of the pixel so far, shape (C, 1, N).
    """

    def __init__(self, model: CausalWindow, n: int, context: Tensor | None) -> None:
        self.model, self.context = model, context
        like, count = model.bias, len(model.rows)
        self.values = like.new_zeros(model.shape[0], count + 1, n)
        self.squares = like.new_zeros(count + 1, n)
        self.own = like.new_zeros(model.shape[0], 1, n)
        self.column = 0
        self._look()

    @property
    def _here(self) -> slice:
        """The pixel of the next column."""
        pixel = self.column // self.model.shape[0]
        return slice(pixel, pixel + 1)

    def _look(self) -> None:
        """Evaluates what the channels of the next pixel share."""
        self.seen = self.model.local.seen_at(self.values, self.squares, self._here)
        self.h = self.model.trunk(self.seen, self._here, self.context)

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        c = self.column % self.model.shape[0]
        return self.model.theta(c, self.h, self.seen, self.own, self._here)[0]

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        channels = self.model.shape[0]
        self.own[self.column % channels, 0] = features[0]
        here = self._here
        self.column += 1
        if self.column % channels == 0 and self.column < len(self.model.inputs):
            self.values[:, here] = self.own
            self.squares[here] = self.model.local.squares(self.seen, self.own)
            self._look()

    def take(self, index: Tensor) -> None:
        """Goes on with some of the images, of which one may be there several times."""
        self.values, self.squares = self.values[..., index], self.squares[..., index]
        self.own, self.h = self.own[..., index], self.h[..., index]
        self.context = None if self.context is None else self.context[:, index]
        seen = self.seen
        self.seen = seen._replace(
            window=seen.window[..., index],
            guess=seen.guess[..., index],
            log_scale=seen.log_scale[..., index],
        )
