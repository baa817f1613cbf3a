"""`NITSImages`: fits, scores, samples and completes 8-bit images; no mathematics in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits import checks
from nits.chunks import slices
from nits.heads import Continuous, Quantized
from nits.images import arrays
from nits.images.dequantized import LEVELS, Dequantized
from nits.model.density import Density
from nits.model.joint import NITS
from nits.training.fit import fit as train
from nits.training.recipe import Recipe
from nits.training.rows import Rows
from nits.weights import SIZES, ConvSize

HELD_OUT = 1000
"""Images that are held out at most: looking at one costs a third of learning from it."""

SCORED_AT_ONCE = 256
EPOCHS = 20
PIXELS_PER_STEP = 8192
RATE_TIMES_FILTERS = 0.16


class NITSImages:
    """The exact probability of 8-bit images, pixel by pixel from the top left; grey or RGB, all of one size.

    size: "tiny", "small", "paper-bsds300", "paper-cifar10", or a `nits.weights.ConvSize`.
    pnn: Hidden layers of each channel's PNN; one layer, such as (10,), is PixelCNN++'s mixture of
        logistics.
    dequantize: "uniform" models a density of pixels with noise, which bounds the probability; None is exact.
    levels: How many values a channel has, 0 … levels − 1; 256 if pixels have noise.
    dropout: Instead of the size's own.
    batch_size: Images per step; 8 to 32 by default, about 8,000 pixels.
    learning_rate: The peak of the schedule; 0.16 over the number of filters by default.
    max_minutes, max_steps: The budget; 20 passes over the images by default.
    validation_fraction: Share of the images that decide when to stop, at most 1,000.
    checkpoint: File to write every three minutes; a fit that finds it goes on from there.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.
    """

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        *,
        size: str | ConvSize = "small",
        pnn: tuple[int, ...] = (8, 8),
        dequantize: str | None = None,
        levels: int = 256,
        dropout: float | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        max_minutes: float | None = None,
        max_steps: int | None = None,
        validation_fraction: float = 0.1,
        checkpoint: str | Path | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.size, self.pnn, self.dequantize, self.dropout = size, tuple(pnn), dequantize, dropout
        self.levels = levels
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.max_minutes, self.max_steps = max_minutes, max_steps
        self.validation_fraction, self.checkpoint = validation_fraction, checkpoint
        self.random_state, self.verbose = random_state, verbose

    def fit(self, images: Any, labels: Any = None) -> NITSImages:
        """Learns from images, or a folder's path; with labels, whole numbers, the density given one."""
        pixels = arrays.read(images, levels=self.levels)
        count, *shape = pixels.shape
        if count < 2:
            raise ValueError(f"images must be at least 2, but there is {count}; add some.")
        self.shape_ = (shape[0], shape[1], shape[2])
        self.classes_ = None if labels is None else np.unique(_labels(labels, count))
        seed = np.random.default_rng(self.random_state).integers(2**31 - 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed))
            self.model_ = self._built(self._size(), len(self._classes))
        held_out = min(HELD_OUT, int(self.validation_fraction * count))
        order = torch.from_numpy(np.random.default_rng(seed).permutation(count))
        rows = Rows(arrays.rows(pixels), self._context(labels, count))
        self._train(
            rows.subset(order[held_out:]),
            rows.subset(order[:held_out]) if held_out else None,
            int(seed),
        )
        return self

    def _size(self) -> ConvSize:
        if isinstance(self.size, str) and self.size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, but is {self.size!r}.")
        size = SIZES[self.size] if isinstance(self.size, str) else self.size
        return size if self.dropout is None else size._replace(dropout=self.dropout)

    def _built(self, size: ConvSize, context: int) -> Density:
        """Returns the untrained model."""
        if self.dequantize not in (None, "uniform"):
            raise ValueError(f'dequantize must be None or "uniform", but is {self.dequantize!r}.')
        if self.dequantize is None:
            pixel = Quantized(0.0, 1.0, self.levels, self.pnn)
            return NITS.conv(self.shape_, pixel, size=size, context=context)
        if self.levels != LEVELS:
            raise ValueError(
                f"pixels with noise must have {LEVELS} levels, but have {self.levels}."
            )
        head = Continuous(0.0, 1.0, self.pnn)
        return Dequantized(NITS.conv(self.shape_, head, size=size, context=context))

    @property
    def _classes(self) -> NDArray[Any]:
        return np.empty(0) if self.classes_ is None else self.classes_

    def _train(self, rows: Rows, held_out: Rows | None, seed: int) -> None:
        budgeted = self.max_minutes is not None or self.max_steps is not None
        place = None if self.checkpoint is None else Path(self.checkpoint)
        self.history_ = train(
            self.model_,
            rows.x,
            context=rows.context,
            validation=0.0 if held_out is None else held_out,
            recipe=self._recipe(),
            max_epochs=None if budgeted else EPOCHS,
            max_steps=self.max_steps,
            max_minutes=self.max_minutes,
            checkpoint=place,
            resume=place if place is not None and place.exists() else None,
            seed=seed,
            progress=self.verbose,
        ).to_dict()
        self.model_.eval()
        final = self.history_["final_validation"]
        self.held_out_ = None if final is None else self._bits(final)

    def _recipe(self) -> Recipe:
        _, height, width = self.shape_
        batch, rate = self.batch_size, self.learning_rate
        if batch is None:
            batch = next((n for n in (32, 16) if n * height * width <= PIXELS_PER_STEP), 8)
        if rate is None:
            rate = RATE_TIMES_FILTERS / self._size().filters
        return Recipe(batch_size=batch, learning_rate=rate)

    def _bits(self, nats: float) -> float:
        return -nats / (self.model_.columns * math.log(2))

    def _context(self, labels: Any, count: int) -> Tensor | None:
        """Returns labels as rows of zeros and a one, shape (N, classes)."""
        if (labels is None) != (self.classes_ is None):
            have, got = ("no labels", "some") if self.classes_ is None else ("labels", "none")
            raise ValueError(f"this model was fitted with {have}, but got {got}.")
        if labels is None:
            return None
        found = _labels(labels, count)
        unknown = found[~np.isin(found, self._classes)]
        if len(unknown):
            known = ", ".join(map(str, self._classes))
            raise ValueError(
                f"label {unknown[0]} was not there in training, but {known}; leave it out."
            )
        return torch.from_numpy((found[:, None] == self._classes).astype(np.float32))

    def score_samples(self, images: Any, labels: Any = None, draws: int = 8) -> NDArray[np.float64]:
        """Returns log P of each image in nats, shape (N,); with dequantize, a bound by so many draws."""
        parts = [
            self._scored(rows, context, draws) for rows, context in self._batches(images, labels)
        ]
        return torch.cat(parts).double().numpy()

    def _scored(self, rows: Tensor, context: Tensor | None, draws: int) -> Tensor:
        with torch.no_grad():
            if isinstance(self.model_, Dequantized):
                return self.model_.bound(rows, context, draws)
            return self.model_.log_prob(rows, context)

    def _batches(self, images: Any, labels: Any) -> list[tuple[Tensor, Tensor | None]]:
        self._check_fitted()
        rows = arrays.rows(arrays.read(images, self.shape_, self.levels))
        context = self._context(labels, len(rows))
        return [
            (rows[some], None if context is None else context[some])
            for some in slices(len(rows), SCORED_AT_ONCE)
        ]

    def bits_per_dim(self, images: Any, labels: Any = None, draws: int = 8) -> float:
        """Returns the mean of −log₂ P per pixel and channel; with dequantize, an upper bound."""
        return self._bits(float(self.score_samples(images, labels, draws).mean()))

    def surprise(self, images: Any, labels: Any = None) -> NDArray[np.float64]:
        """Returns −log₂ P of every pixel given those before it, in the shape of the images."""
        with torch.no_grad():
            batches = self._batches(images, labels)
            parts = [self.model_.log_prob_per_column(rows, context) for rows, context in batches]
        return arrays.pictures(-torch.cat(parts).double() / math.log(2), self.shape_)

    def sample(
        self, n_samples: int = 1, random_state: int | None = None, labels: Any = None
    ) -> NDArray[np.uint8]:
        """Draws images, uint8, shape (n, H, W) or (n, H, W, C); for a model with labels, one for each."""
        self._check_fitted()
        checks.positive("n_samples", n_samples)
        context = self._context(labels, n_samples)
        drawn = self.model_.sample(n_samples, context, _seed(random_state))
        return self._pixels(drawn)

    def complete(
        self, images: Any, mask: Any, random_state: int | None = None, labels: Any = None
    ) -> NDArray[np.uint8]:
        """Draws the rest of images from its exact distribution given their first pixels.

        mask: True where a pixel is known, shape (H, W): those that come first in reading order.
        """
        self._check_fitted()
        pixels = arrays.read(images, self.shape_, self.levels)
        known = arrays.first_pixels(mask, self.shape_)
        given = arrays.rows(pixels).masked_fill(~known, math.nan)
        context = self._context(labels, len(given))
        drawn = self.model_.sample(len(given), context, _seed(random_state), given=given)
        return self._pixels(drawn)

    def _pixels(self, drawn: Tensor) -> NDArray[np.uint8]:
        """Returns rows as images; noise, if there is any, is what lies behind the point."""
        whole = drawn.floor().clamp(max=self.levels - 1)
        return arrays.pictures(whole, self.shape_).astype(np.uint8)

    def save(self, path: str | Path) -> None:
        """Writes the model to one file; `nits.load` reads it."""
        from nits.images import persistence

        self._check_fitted()
        persistence.save(self, path)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise ValueError("this model has not been fitted; call fit(images) first.")


def _labels(labels: Any, count: int) -> NDArray[Any]:
    found = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be whole numbers, one per image, shape ({count},), but are {found.dtype}, "
            f"shape {found.shape}."
        )
    return found


def _seed(random_state: int | None) -> int:
    return int(np.random.default_rng(random_state).integers(2**31 - 1))
