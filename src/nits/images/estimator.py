"""`NITSImages`: fits, scores, samples and completes 8-bit images; no mathematics in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from nits import checks
from nits.chunks import slices
from nits.heads import Continuous, Quantized
from nits.images import arrays
from nits.images.classifying import Classifying
from nits.images.completing import Completing
from nits.images.dequantized import LEVELS, Dequantized
from nits.images.drawing import Drawing
from nits.images.shown import Shown
from nits.model.density import Density
from nits.model.joint import NITS
from nits.training.fit import fit as train
from nits.training.optimizers import AdamW, Muon
from nits.training.recipe import Recipe
from nits.training.rows import Rows
from nits.weights import WindowSize, image_sizes
from nits.weights.image_sizes import ImageSize

HELD_OUT = 1000
"""The most images that are held out: to score one costs a third of a training step on it."""

SCORED_AT_ONCE = 256
EPOCHS = 20
PIXELS_PER_STEP = 8192


class NITSImages(
    Shown,
    Completing,
    Drawing,
    Classifying,
    DensityMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """The exact probability of 8-bit images, grey or RGB, all of one size, pixel by pixel.

    It keeps scikit-learn's contract, with images in place of X and labels in place of y.

    size: "tiny", "small", "window", "paper-bsds300", "paper-cifar10", a `nits.weights.ConvSize` or
        a `nits.weights.WindowSize`.
    pnn: Hidden layers of each channel's PNN. The paper's 16 × 16, which heads have by default,
        would double the cost of a step, and was behind after equal seconds; one layer, such as
        (10,), is PixelCNN++'s mixture of logistics.
    dequantize: None for exact probabilities, or "uniform": a density of pixels with noise, which
        gives a bound on the probability.
    levels: Values that a channel can have, 0 … levels − 1; 256 if pixels have noise.
    dropout: In place of the size's own.
    batch_size: Images per step; 8 to 32 by default, about 8,000 pixels.
    learning_rate: The peak of the schedule; by default that of the size.
    precision: None, or "bfloat16" for the inner layers while they learn: see `nits.Recipe`.
    max_minutes, max_steps: The budget; 20 epochs by default.
    validation_fraction: Share of the images that decide when to stop, at most 1,000.
    checkpoint: File to write every three minutes; if it exists, `fit` resumes from it.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.
    """

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        *,
        size: str | ImageSize = "small",
        pnn: tuple[int, ...] = (8, 8),
        dequantize: str | None = None,
        levels: int = 256,
        dropout: float | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        precision: str | None = None,
        max_minutes: float | None = None,
        max_steps: int | None = None,
        validation_fraction: float = 0.1,
        checkpoint: str | Path | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.size = size
        self.pnn = pnn
        self.dequantize = dequantize
        self.levels = levels
        self.dropout = dropout
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.precision = precision
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, images: Any, labels: Any = None) -> NITSImages:
        """Learns the probability of images, or of the files in a folder, given as its path.

        labels: Integers, one per image; the probability is then that given the label.
        """
        pixels = arrays.read(images, levels=self.levels)
        count, *shape = pixels.shape
        if count < 2:
            raise ValueError(f"there must be at least 2 images, but there is {count}; add some.")
        self.shape_ = (shape[0], shape[1], shape[2])
        self.classes_ = None if labels is None else np.unique(_labels(labels, count))
        seed = np.random.default_rng(self.random_state).integers(2**31 - 1)
        self.model_ = self._built(self._size(), len(self._classes), int(seed))
        held_out = min(HELD_OUT, int(self.validation_fraction * count))
        order = torch.from_numpy(np.random.default_rng(seed).permutation(count))
        rows = Rows(arrays.rows(pixels), self._context(labels, count))
        judges = rows.subset(order[:held_out]) if held_out else None
        self._train(rows.subset(order[held_out:]), judges, int(seed))
        return self

    def _size(self) -> ImageSize:
        size = image_sizes.named(self.size)
        return size if self.dropout is None else size._replace(dropout=self.dropout)

    def _built(self, size: ImageSize, context: int, seed: int) -> Density:
        """Returns the untrained model."""
        if self.dequantize not in (None, "uniform"):
            raise ValueError(
                f"dequantize must be None or 'uniform', but is {self.dequantize!r}; "
                "None gives exact probabilities."
            )
        if self.dequantize is None:
            pixel = Quantized(0.0, 1.0, self.levels, tuple(self.pnn))
            return NITS.conv(self.shape_, pixel, size=size, context=context, generator=seed)
        if self.levels != LEVELS:
            raise ValueError(
                f"levels must be {LEVELS} if pixels have noise, but is {self.levels}; "
                "leave out levels or dequantize."
            )
        real = Continuous(0.0, 1.0, tuple(self.pnn))
        inner = NITS.conv(self.shape_, real, size=size, context=context, generator=seed)
        return Dequantized(inner)

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
        pixels, size = self.shape_[1] * self.shape_[2], self._size()
        usual = next((n for n in (32, 16) if n * pixels <= PIXELS_PER_STEP), 8)
        return Recipe(
            batch_size=usual if self.batch_size is None else self.batch_size,
            learning_rate=size.rate if self.learning_rate is None else self.learning_rate,
            optimizer=Muon() if isinstance(size, WindowSize) else AdamW(),
            precision=self._precision(),
        )

    def _precision(self) -> torch.dtype | None:
        if self.precision not in (None, "bfloat16"):
            raise ValueError(
                f"precision must be None or 'bfloat16', but is {self.precision!r}; "
                "None is that of the weights."
            )
        return None if self.precision is None else torch.bfloat16

    def _bits(self, nats: float) -> float:
        return -nats / (self.model_.columns * math.log(2))

    def _context(self, labels: Any, count: int) -> Tensor | None:
        """Returns one-hot labels, shape (N, classes)."""
        if (labels is None) != (self.classes_ is None):
            raise ValueError(
                "this model was fitted without labels, but got some; leave them out."
                if self.classes_ is None
                else "this model was fitted with labels, but got none; pass labels=."
            )
        if labels is None:
            return None
        found = _labels(labels, count)
        unknown = found[~np.isin(found, self._classes)]
        if len(unknown):
            known = ", ".join(map(str, self._classes))
            raise ValueError(
                f"labels must be among those of training, {known}, but one is {unknown[0]}."
            )
        return torch.from_numpy((found[:, None] == self._classes).astype(np.float32))

    def score_samples(self, images: Any, labels: Any = None, draws: int = 8) -> NDArray[np.float64]:
        """Returns log P of each image in nats, shape (N,).

        draws: Draws of the noise for each image; with dequantize, the result is a lower bound.
        """
        check_is_fitted(self, "model_")
        parts = [
            self._scored(rows, context, draws) for rows, context in self._batches(images, labels)
        ]
        return torch.cat(parts).double().numpy()

    def _scored(self, rows: Tensor, context: Tensor | None, draws: int) -> Tensor:
        with torch.no_grad():
            if isinstance(self.model_, Dequantized):
                return self.model_.bound(rows, context, draws)
            return self.model_.log_prob(rows, context)

    def score(self, images: Any, labels: Any = None) -> float:
        """Returns the mean of log P over the images, in nats; with dequantize, a lower bound."""
        return float(self.score_samples(images, labels).mean())

    def _batches(self, images: Any, labels: Any) -> list[tuple[Tensor, Tensor | None]]:
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
        check_is_fitted(self, "model_")
        with torch.no_grad():
            batches = self._batches(images, labels)
            parts = [self.model_.log_prob_per_column(rows, context) for rows, context in batches]
        return arrays.pictures(-torch.cat(parts).double() / math.log(2), self.shape_)

    def sample(
        self, n_samples: int = 1, random_state: int | None = None, labels: Any = None
    ) -> NDArray[np.uint8]:
        """Draws images, uint8, shape (n, H, W) or (n, H, W, C).

        labels: For a model with labels, one for each image to draw.
        """
        check_is_fitted(self, "model_")
        checks.positive("n_samples", n_samples)
        context = self._context(labels, n_samples)
        drawn = self.model_.sample(n_samples, context, self._drawn_seed(random_state))
        return self._pixels(drawn)

    def _drawn_seed(self, random_state: int | None) -> int:
        return int(np.random.default_rng(random_state).integers(2**31 - 1))

    def _pixels(self, drawn: Tensor) -> NDArray[np.uint8]:
        """Returns rows as images; noise, if there is any, is what lies behind the point."""
        whole = drawn.floor().clamp(max=self.levels - 1)
        return arrays.pictures(whole, self.shape_).astype(np.uint8)

    def save(self, path: str | Path) -> None:
        """Writes the model to one file; `nits.load` reads it."""
        from nits.images import persistence

        check_is_fitted(self, "model_")
        persistence.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.non_deterministic = False
        return tags


def _labels(labels: Any, count: int) -> NDArray[Any]:
    found = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be integers, one per image, shape ({count},), but are {found.dtype}, "
            f"shape {found.shape}."
        )
    return found
