"""What the explorer answers of a model of images: draws, completions of masked pixels, and bits."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nits.images import arrays
from nits.images.completion import Walked, completed
from nits.model.joint import NITS

if TYPE_CHECKING:
    from nits.images.estimator import NITSImages

LARGEST = 12_288
"""Values of an image, 64 × 64 × 3, that a request has room for."""

MOST, FEWEST = 48, 8
"""Completions that are drawn, if they are quick, and at least."""

PATIENCE = 6.0
"""Seconds that completions should take."""

SHOWN = 8


@dataclass(frozen=True)
class Description:
    """A model of images: their shape, the number of levels, and how many came with it."""

    title: str
    channels: int
    height: int
    width: int
    levels: int
    images: int


@dataclass(frozen=True)
class Picture:
    """Values of one image, in reading order, the channels of a pixel together."""

    pixels: list[int]


@dataclass(frozen=True)
class Completed:
    """Some completions.

    ess: How many independent draws all `count` of them are worth.
    bits: −log₂ of the probability of the known pixels; an estimate unless `exact`.
    mean: Of all completions, as a picture.
    """

    images: list[list[int]]
    mean: list[int]
    count: int
    ess: float
    exact: bool
    bits: float
    known: int


@dataclass(frozen=True)
class Bits:
    """Bits of every value given those before it, and their sum."""

    each: list[float]
    total: float


class ImageSession:
    """A model of images, and perhaps some images, to explore.

    title: What the page calls it.
    """

    def __init__(self, estimator: NITSImages, images: Any = None, *, title: str = "model") -> None:
        self.estimator, self.title = estimator, title
        self.shape = estimator.shape_
        model = estimator.model_
        if not isinstance(model, NITS) or model.context_features:
            raise ValueError(
                "nits explore takes a model of pixels as they are, without labels or noise, but "
                "this one has them; fit it without --dequantize and labels."
            )
        if math.prod(self.shape) > LARGEST:
            raise ValueError(
                f"nits explore takes images of up to {LARGEST} values, but these have "
                f"{math.prod(self.shape)}."
            )
        self.model = model
        self.images = None if images is None else arrays.read(images, self.shape, estimator.levels)
        self.count = self._affordable()

    def _affordable(self) -> int:
        """Returns how many completions are quick enough."""
        start = time.process_time()
        self._walk(torch.full((self.model.columns,), math.nan), FEWEST, 0)
        spent = time.process_time() - start
        return max(FEWEST, min(MOST, int(FEWEST * PATIENCE / max(spent, 1e-3))))

    def describe(self) -> Description:
        """Returns what images there are."""
        count = 0 if self.images is None else len(self.images)
        return Description(self.title, *self.shape, self.estimator.levels, count)

    def drawn(self, seed: Any) -> Picture:
        """Returns a new image."""
        given = torch.full((self.model.columns,), math.nan)
        return Picture(_whole(self._walk(given, 1, _seed(seed)).rows[0, 0]))

    def picked(self, number: Any) -> Picture:
        """Returns one of the images that came with the model; the first is number 1."""
        if self.images is None:
            raise ValueError("there are no images to pick from; name a folder after the model.")
        if type(number) is not int or not 1 <= number <= len(self.images):
            raise ValueError(
                f"there are images 1 to {len(self.images)}, but {number!r:.40} is asked."
            )
        return Picture(_whole(arrays.rows(self.images[number - 1 : number])[0]))

    def complete(self, pixels: Any, seed: Any) -> Completed:
        """Returns completions of an image, of which unknown values are None."""
        given = self._told(pixels)
        found = self._walk(given, self.count, _seed(seed))
        rows, log_prob = found.rows[0], float(found.log_prob)
        if not math.isfinite(log_prob):
            raise ValueError("the known pixels have no probability; forget some of them.")
        some = torch.linspace(0, len(rows) - 1, SHOWN).round().long()
        return Completed(
            [_whole(rows[k]) for k in some.tolist()],
            _whole(rows.mean(0).round()),
            len(rows),
            float(found.ess),
            bool(found.exact),
            -log_prob / math.log(2),
            int((~torch.isnan(given)).sum()),
        )

    def bits(self, pixels: Any) -> Bits:
        """Returns the bits of an image without unknown pixels."""
        given = self._told(pixels)
        if bool(torch.isnan(given).any()):
            raise ValueError("bits are those of a whole image; complete it first.")
        with torch.no_grad():
            each = -self.model.log_prob_per_column(given.unsqueeze(0))[0].double() / math.log(2)
        return Bits(each.tolist(), float(each.sum()))

    def _walk(self, given: torch.Tensor, count: int, seed: int) -> Walked:
        return completed(self.model, given.unsqueeze(0), count, seed)

    def _told(self, pixels: Any) -> torch.Tensor:
        """Returns what the page says an image is, NaN where nothing is known."""
        levels = self.estimator.levels
        if not isinstance(pixels, list) or len(pixels) != self.model.columns:
            raise ValueError(
                f"an image must be a list of {self.model.columns} values or nulls, but is not."
            )
        for value in pixels:
            if value is not None and (type(value) is not int or not 0 <= value < levels):
                raise ValueError(
                    f"a value must be null or an integer from 0 to {levels - 1}, "
                    f"but one is {value!r:.40}."
                )
        return torch.from_numpy(np.array(pixels, np.float32))


def _whole(row: torch.Tensor) -> list[int]:
    return [int(value) for value in row.tolist()]


def _seed(seed: Any) -> int:
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise ValueError("a seed must be an integer from 0 to 2147483647.")
    return seed
