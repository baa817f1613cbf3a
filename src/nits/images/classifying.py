"""How a fitted model of labelled images tells labels: Bayes' rule, and how far to trust it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted


@dataclass(frozen=True)
class Calibration:
    """How often labels are right, beside how often they are said to be.

    accuracy: Share of the images whose most probable label is theirs.
    log_loss: Mean of −log P(label | image), in nats.
    error: Mean distance of a bin's confidence from its accuracy, by images: the expected
        calibration error.
    confidence, right, images: Of each bin of the most probable label's probability: its mean, how
        often it is the image's, and the number of images; NaN where there are none.
    """

    accuracy: float
    log_loss: float
    error: float
    confidence: NDArray[np.float64]
    right: NDArray[np.float64]
    images: NDArray[np.int64]


class Classifying(ABC):
    """The methods that tell labels."""

    classes_: NDArray[Any] | None

    @abstractmethod
    def score_samples(self, images: Any, labels: Any = None, draws: int = 8) -> NDArray[np.float64]:
        """Returns log P of each image in nats."""

    def predict_log_proba(self, images: Any, prior: Any = None) -> NDArray[np.float64]:
        """Returns log P(label | image), shape (N, classes), by Bayes' rule.

        prior: Probability of each label, in the order of `classes_`; alike by default.
        """
        check_is_fitted(self, "model_")
        if self.classes_ is None:
            raise ValueError(
                "labels can only be told by a model with labels, but this one has none; "
                "fit it with labels."
            )
        weights = _prior(prior, len(self.classes_))
        count = len(images)
        joint = np.stack(
            [self.score_samples(images, np.full(count, label)) for label in self.classes_], 1
        ) + np.log(weights)
        found: NDArray[np.float64] = joint - np.logaddexp.reduce(joint, 1, keepdims=True)
        return found

    def predict_proba(self, images: Any, prior: Any = None) -> NDArray[np.float64]:
        """Returns P(label | image), shape (N, classes); see `predict_log_proba`."""
        return np.exp(self.predict_log_proba(images, prior))

    def predict(self, images: Any, prior: Any = None) -> NDArray[Any]:
        """Returns the most probable label of each image, shape (N,)."""
        chosen = self.predict_log_proba(images, prior).argmax(1)
        told: NDArray[Any] = np.asarray(self.classes_)[chosen]
        return told

    def calibration(
        self, images: Any, labels: Any, prior: Any = None, *, bins: int = 10
    ) -> Calibration:
        """Returns how often told labels are right beside how often they are said to be.

        labels: The true ones, all among those of training.
        """
        found, given = self.predict_log_proba(images, prior), np.asarray(labels)
        places = given[:, None] == np.asarray(self.classes_)
        if places.shape != found.shape or not places.any(1).all():
            raise ValueError(
                f"labels must be {len(found)} of those of training, but are not; leave out images "
                "with other labels."
            )
        return _calibration(found, places.argmax(1), bins)


def _prior(prior: Any, classes: int) -> NDArray[np.float64]:
    weights = np.full(classes, 1 / classes) if prior is None else np.asarray(prior, float)
    if weights.shape != (classes,) or not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise ValueError(
            f"prior must be {classes} positive probabilities that add up to one, but is {prior}."
        )
    return weights


def _calibration(
    log_proba: NDArray[np.float64], truth: NDArray[np.int64], bins: int
) -> Calibration:
    confidence = np.exp(log_proba.max(1))
    right = log_proba.argmax(1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        said = np.bincount(place, confidence, bins) / count
        true = np.bincount(place, right, bins) / count
    error = float(np.nansum(np.abs(said - true) * count) / len(truth))
    loss = -float(log_proba[np.arange(len(truth)), truth].mean())
    return Calibration(float(right.mean()), loss, error, said, true, count)
