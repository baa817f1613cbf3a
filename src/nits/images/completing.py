"""How a fitted model of images completes them: known pixels anywhere, the others drawn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from nits import checks
from nits.images import arrays
from nits.images.completion import Walked, completed, first_in_order
from nits.model.density import Density

PARTICLES = 64


@dataclass(frozen=True)
class Completions:
    """Completions of N images, K of each, all of which count the same.

    images: uint8, shape (N, K, H, W) or (N, K, H, W, C).
    ess: The effective sample size: how many independent draws those of an image are worth at the
        pixel where they are worth least, shape (N,).
    ancestors: How many particles of the first pixel those of an image descend from, shape (N,). If
        it is one, the pixels before the first known one are alike in all of them.
    exact: Whether an image's completions are draws from the exact distribution, which they are if
        its known pixels come first in reading order, shape (N,).
    log_prob: Log-probability of the known pixels in nats, an estimate unless exact, shape (N,).
    """

    images: NDArray[np.uint8]
    ess: NDArray[np.float64]
    ancestors: NDArray[np.int64]
    exact: NDArray[np.bool_]
    log_prob: NDArray[np.float64]


class Completing(ABC):
    """The methods that complete images."""

    model_: Density
    shape_: arrays.Shape
    levels: int

    @abstractmethod
    def _context(self, labels: Any, count: int) -> Tensor | None:
        """Returns one-hot labels, shape (N, classes)."""

    @abstractmethod
    def _pixels(self, drawn: Tensor) -> NDArray[np.uint8]:
        """Returns rows as images."""

    @abstractmethod
    def _drawn_seed(self, random_state: int | None) -> int:
        """Returns a seed of torch's."""

    def complete(
        self,
        images: Any,
        mask: Any,
        random_state: int | None = None,
        labels: Any = None,
        *,
        particles: int = PARTICLES,
    ) -> NDArray[np.uint8]:
        """Draws the unknown pixels of images from their distribution given the known ones.

        It is exact if known pixels come first in reading order. Otherwise one of the particles of
        `completions` is drawn, which says how good they are.

        mask: True where a pixel is known, shape (H, W), or (N, H, W) for a mask per image.
        """
        given, context = self._known(images, mask, labels)
        seed = self._drawn_seed(random_state)
        if bool(first_in_order(self.model_, ~torch.isnan(given)).all()):
            return self._pixels(self.model_.sample(len(given), context, seed, given=given))
        found = self._walked(given, context, particles, seed)
        chosen = torch.randint(
            particles, (len(given),), generator=torch.Generator().manual_seed(seed)
        )
        return self._pixels(found.rows[torch.arange(len(given)), chosen])

    def completions(
        self,
        images: Any,
        mask: Any,
        random_state: int | None = None,
        labels: Any = None,
        *,
        particles: int = PARTICLES,
    ) -> Completions:
        """Returns several completions of each image, and how many independent draws they are worth.

        mask: True where a pixel is known, shape (H, W), or (N, H, W) for a mask per image.
        particles: How many there are of each image: sequential Monte Carlo, `nits.images`.
        """
        given, context = self._known(images, mask, labels)
        found = self._walked(given, context, particles, self._drawn_seed(random_state))
        pixels = self._pixels(found.rows.flatten(0, 1))
        return Completions(
            pixels.reshape(len(given), particles, *pixels.shape[1:]),
            found.ess.numpy(),
            found.ancestors.numpy(),
            found.exact.numpy(),
            found.log_prob.numpy(),
        )

    def _known(self, images: Any, mask: Any, labels: Any) -> tuple[Tensor, Tensor | None]:
        """Returns rows with NaN for what is unknown, shape (N, D), and their context."""
        check_is_fitted(self, "model_")
        pixels = arrays.read(images, self.shape_, self.levels)
        known = arrays.known_columns(mask, self.shape_, len(pixels))
        given = arrays.rows(pixels).masked_fill(~known, math.nan)
        return given, self._context(labels, len(given))

    def _walked(self, given: Tensor, context: Tensor | None, particles: int, seed: int) -> Walked:
        """Completes as many images at once as there is memory for."""
        checks.positive("particles", particles)
        size = max(1, self.model_.stepped_at_once // particles)
        abouts = [None] * len(given) if context is None else context.split(size)
        pairs = zip(given.split(size), abouts, strict=False)
        parts = [
            completed(self.model_, some, particles, seed + k, about)
            for k, (some, about) in enumerate(pairs)
        ]
        names = ("rows", "ess", "ancestors", "exact", "log_prob")
        return Walked(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
