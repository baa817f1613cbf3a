"""How a fitted model of images draws them: row by row to look at, and for every label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from nits import checks
from nits.images import arrays
from nits.model.density import Density
from nits.pnn.random import private_generator, uniform


class Drawing(ABC):
    """The methods that draw images while somebody watches, or for all labels."""

    model_: Density
    shape_: arrays.Shape
    classes_: NDArray[Any] | None

    @abstractmethod
    def sample(
        self, n_samples: int = 1, random_state: int | None = None, labels: Any = None
    ) -> NDArray[np.uint8]:
        """Draws images."""

    @abstractmethod
    def _context(self, labels: Any, count: int) -> Tensor | None:
        """Returns one-hot labels, shape (N, classes)."""

    @abstractmethod
    def _pixels(self, drawn: Tensor) -> NDArray[np.uint8]:
        """Returns rows as images."""

    @abstractmethod
    def _drawn_seed(self, random_state: int | None) -> int:
        """Returns a seed of torch's."""

    def drawing(
        self, n_samples: int = 1, random_state: int | None = None, labels: Any = None
    ) -> Iterator[NDArray[np.uint8]]:
        """Yields the images after every row of pixels that is drawn; the rest is black.

        The last ones are those of `sample`, if all of these are drawn at once.
        """
        check_is_fitted(self, "model_")
        checks.positive("n_samples", n_samples)
        context, model = self._context(labels, n_samples), self.model_
        source = private_generator(self._drawn_seed(random_state), model.like.device)
        u = uniform(torch.Size((n_samples, model.columns)), model.like, source)
        drawn, width = torch.zeros_like(u), self.shape_[0] * self.shape_[2]
        with torch.no_grad():
            steps = model.steps(n_samples, context)
        for start in range(0, model.columns, width):
            with torch.no_grad():  # not while the caller looks
                for i in range(start, start + width):
                    drawn[:, i] = steps.quantile(u[:, i])
                    steps.feed(drawn[:, i])
            yield self._pixels(drawn)

    def sample_classes(
        self, per_class: int = 8, random_state: int | None = None
    ) -> NDArray[np.uint8]:
        """Draws as many images for each label, shape (classes, per_class, H, W[, C])."""
        check_is_fitted(self, "model_")
        checks.positive("per_class", per_class)
        if self.classes_ is None:
            raise ValueError(
                "images for each label need a model with labels, but this one has none; "
                "fit it with labels."
            )
        labels = np.repeat(self.classes_, per_class)
        images = self.sample(len(labels), random_state, labels)
        return images.reshape(len(self.classes_), per_class, *images.shape[1:])
