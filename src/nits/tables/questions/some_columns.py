"""Some columns of an answer, the rest left out: their densities, joint cdf, and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nits.tables import zones
from nits.tables.frames import Frame
from nits.tables.questions import likelihood
from nits.tables.questions.cloud import Cloud, mean_ratio, walked
from nits.tables.questions.conditions import Range
from nits.tables.questions.events import event, known
from nits.tables.questions.results import Estimate, Found
from nits.tables.questions.shares import inside
from nits.tables.questions.single import missing_only

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

PARTICLES = 2**14
"""Particles of a joint cdf at least: all points share them."""


class Marginal:
    """The distribution of some columns under the conditions of an answer; the rest is left out."""

    def __init__(self, answer: Answer, columns: Sequence[str]) -> None:
        self.answer, self.columns = answer, list(columns)

    def __repr__(self) -> str:
        return f"<{', '.join(self.columns)} of {self.answer!r}>"

    def log_prob(self, X: Any) -> Found:
        """Returns log-densities of rows, shape (N,), with `error`, their standard errors."""
        return likelihood.log_prob(self.answer, X, self.columns)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Any:
        """Draws rows of these columns, as a table of the type that the model was fitted on."""
        frame = zones.read(self.answer.sample(n_samples, random_state))
        return zones.write(Frame({n: frame.columns[n] for n in self.columns}, frame.form))

    def cdf(self, X: Any) -> Estimate:
        """Returns how probable known values at most as large as each row's are, all together.

        X: A table with these columns. Each field of the result has shape (N,).
        """
        frame = zones.read(X)
        for name in self.columns:
            likelihood.refuse_lacking(name, frame)
        places = [self.answer.estimator.schema_.names.index(name) for name in self.columns]
        with torch.no_grad():
            cloud = self._cloud(places)
            weights = _weights(cloud)
            below = torch.ones(len(frame), *weights.shape, dtype=torch.bool)
            for name, i in zip(self.columns, places, strict=True):
                column, values = self.answer.query.laws[i].column, frame.columns[name]
                drawn = [part[0] for part in cloud.column(i)]
                weights = weights * inside(known(column), *drawn)
                if not bool(weights.sum()):
                    raise missing_only(column)
                for k in range(len(frame)):
                    upper = Range(None, values.array[k], to_high=True)
                    below[k] &= inside(event(column, [upper]), *drawn)
        found, error = mean_ratio((weights * below).sum(-1), weights.sum(-1).expand(len(frame), -1))
        ess = np.full(len(frame), float(cloud.ess()[0]))
        return Estimate(found.numpy(), error.numpy(), ess)

    def _cloud(self, places: list[int]) -> Cloud:
        """Returns particles that have passed all of these columns."""
        answer = self.answer
        density, total = answer.estimator.model_, max(answer.particles, PARTICLES)
        cloud = walked(density, answer.query, answer.seed, total=total, drawing=True)
        for walk in cloud.walks:
            walk.to(max(walk.rank, *(walk.order.index(i) + 1 for i in places)))
        return cloud


def _weights(cloud: Cloud) -> Tensor:
    """Returns the particles' weights up to a factor, shape (B, Σ size)."""
    log_weights = cloud.log_weights()[0]
    return (log_weights - log_weights.amax()).exp()
