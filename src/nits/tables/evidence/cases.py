"""The case of one numeric column: its candidates, and what held-out values say of each."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nits.tables.evidence import atoms as spikes
from nits.tables.evidence import candidates, scales
from nits.tables.evidence.candidates import Mask
from nits.tables.evidence.contest import LISTED, SMOOTH, Candidate, Contest
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.evidence.scales import Asinh, Scale
from nits.tables.evidence.views import Cells, Numbers, Points, View

MOST_LEVELS = 1000
"""Categories that a column may have."""

ORDER = ("grid", "grid with atoms", "ordered", "levels", "real", "real with atoms")
"""Which candidate comes first among those with as many free numbers."""


class Fit(NamedTuple):
    """The smooth model of a column: its scale, the values seen on it, and which are atoms."""

    scale: Scale
    view: View
    atoms: Mask


class Case:
    """The evidence about one column.

    atoms: Whether values may have probabilities of their own beside a density or a grid.
    """

    def __init__(self, record: Record, sample: Sample, atoms: bool = True) -> None:
        self.record, self.sample, self._atoms = record, sample, atoms
        self.trials = sample.trials()
        self.contest = Contest(self.trials)
        self.resolution = record.resolution.at(sample.x)
        # log(resolution / range), without overflow where the range is no float.
        span = math.log(max(sample.x[-1] / 2 - sample.x[0] / 2, 5e-324)) + math.log(2)
        self.escape = np.minimum(np.log(self.resolution) - span, 0.0)

    def view(self, scale: Scale, even: bool) -> View:
        """Returns the values on a scale: as cells of the grid, or as points."""
        if even:
            return Cells.on(scale, self.sample.x, self.record.step)
        return Points.on(scale, self.sample.x, self.resolution)

    def fit(self, even: bool) -> Fit:
        """Returns the scale and the atoms that suit the column best.

        Atoms are sought on a scale that suits all columns somewhat, then scales are compared on
        what the atoms leave, then atoms are sought again.
        """
        none = np.zeros(len(self.sample.x), bool)
        rough = next((s for s in self._scales(none, even) if isinstance(s, Asinh)), None)
        atoms = self._found(self.view(rough, even)) if rough else none
        options = self._scales(atoms, even)
        views = [self.view(scale, even) for scale in options]
        scores = [candidates.smooth_scores(view, atoms, self.trials) for view in views]
        best = max(scores, key=self.contest.mean)
        first = next(i for i, each in enumerate(scores) if self.contest.tied(best, each, 2.0))
        return Fit(options[first], views[first], self._found(views[first]))

    def _found(self, view: View) -> Mask:
        if not self._atoms:
            return np.zeros(len(self.sample.x), bool)
        return spikes.find(view, self.sample.counts, -self.escape)

    def _scales(self, atoms: Mask, even: bool) -> list[Scale]:
        x, counts = self.sample.x, self.sample.counts.astype(np.float64)
        half = self.record.step / 2 if even else 0.0
        low, high = float(x[0]) - half, float(x[-1]) + half
        return scales.fitted(x[~atoms], counts[~atoms], low, high)

    @cached_property
    def even(self) -> bool:
        """Whether the values lie on an even grid with few enough cells."""
        return self.record.step > 0

    def smooth(self, fit: Fit, name: str) -> list[Candidate]:
        """Returns the grid or the density of a fit, without its atoms and with them."""
        masks = [np.zeros_like(fit.atoms)] + ([fit.atoms] if fit.atoms.any() else [])
        return [
            _candidate(
                name + " with atoms" * int(mask.any()),
                candidates.smooth_scores(fit.view, mask, self.trials),
                SMOOTH + int(mask.sum()),
                fit._replace(atoms=mask),
            )
            for mask in masks
        ]

    def lists(self, fit: Fit, beyond: Numbers) -> list[Candidate]:
        """Returns the candidates that list the values: ordered ones, and levels.

        beyond: Scores of the smooth model, which values beyond the range have here, too.
        """
        scores, strength = candidates.ordered_scores(beyond, self.escape, self.trials)
        found = [_candidate("ordered", scores, LISTED, (fit, strength))]
        if len(self.record.values) <= MOST_LEVELS and not self.record.time:
            scores = candidates.level_scores(beyond, self.escape, self.trials)
            found.append(_candidate("levels", scores, len(self.record.values) - 1, (fit, 0.5)))
        return found

    @property
    def listed(self) -> bool:
        """Whether most rows have values that others have, too; else a list would copy the rows."""
        return int((self.sample.counts == 1).sum()) * 2 < self.sample.rows

    def entries(self) -> list[Candidate]:
        """Returns all candidates.

        Real numbers compete with a grid only where the resolution varies along it: else they have
        the masses of the same cells, but for the ends.
        """
        fit = self.fit(self.even)
        found = self.smooth(fit, "grid" if self.even else "real")
        if self.even and self.record.resolution.digits:
            view = self.view(fit.scale, False)
            found += self.smooth(Fit(fit.scale, view, self._found(view)), "real")
        return found + (self.lists(fit, found[0].scores) if self.listed else [])


def _candidate(name: str, scores: Numbers, free: int, made: object) -> Candidate:
    return Candidate(name, scores, free, ORDER.index(name), made)
