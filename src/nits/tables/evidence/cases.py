"""The case of one numeric column: its candidates, and what held-out values say of each."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nits.tables.evidence import atoms as spikes
from nits.tables.evidence import candidates, combs, scaling
from nits.tables.evidence.candidates import Mask
from nits.tables.evidence.combs import Comb
from nits.tables.evidence.contest import LISTED, SMOOTH, Candidate, Contest
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.evidence.scales import Asinh, Scale
from nits.tables.evidence.views import Cells, Counts, Numbers, Points, View

MOST_LEVELS = 1000
"""Categories that a column may have."""

NUMBERS = 64 * math.log(2)
"""Nats to name one of all numbers of 64 bits."""

COARSE = 0.01
"""Distance of neighbouring values, in spreads, from which a density could tell them apart."""

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
    whole: Whether the record has every distinct value.
    """

    def __init__(
        self, record: Record, sample: Sample, atoms: bool = True, whole: bool = True
    ) -> None:
        self.record, self.sample, self._atoms, self._whole = record, sample, atoms, whole
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
        # However wide the range is, a value is one of the type's numbers.
        found = spikes.find(view, self.sample.counts, np.minimum(-self.escape, NUMBERS))
        return self._coarse(view, found) if isinstance(view, Points) else found

    def _coarse(self, view: Points, atoms: Mask) -> Mask:
        """Adds to the atoms the values of a grid that are coarse on the scale, the coarsest first.

        Where a grid has too many cells, and small counts are far apart on a logarithmic scale, a
        density would stand on the counts alone, higher the longer it is trained.
        """
        counts = self.sample.counts
        if self.record.grid is None or self.even or self.record.resolution.digits:
            return atoms
        able = (view.log_width > math.log(COARSE)) & (counts >= spikes.SEVERAL) & ~atoms
        room = min(spikes.MOST_ATOMS, len(counts) - spikes.LEFT) - int(atoms.sum())
        coarsest = np.argsort(np.where(able, -view.log_width, np.inf), kind="stable")
        found = atoms.copy()
        found[coarsest[: min(max(room, 0), int(able.sum()))]] = True
        return found

    def _scales(self, atoms: Mask, even: bool) -> list[Scale]:
        x, counts = self.sample.x, self.sample.counts.astype(np.float64)
        half = self.record.step / 2 if even else 0.0
        low, high = float(x[0]) - half, float(x[-1]) + half
        # The next value that could be recorded beyond an end must have a place on the scale, too.
        room = np.full(2, self.record.step) if even else 2 * self.resolution[[0, -1]]
        found = scaling.fitted(x[~atoms], counts[~atoms], (low, high), room.tolist())
        if not even and (comb := self.comb) is not None:
            low, high = comb.closed(np.array([low, high])).tolist()
            closed = comb.closed(x[~atoms]), counts[~atoms]
            found += map(comb.combed, scaling.fitted(*closed, (low, high), room.tolist()))
        # The network reads the cycles of times, which another scale would bend.
        return found[:1] if self.record.time else found

    @cached_property
    def comb(self) -> Comb | None:
        """The comb whose teeth hold all values, if they are no grid."""
        if not self._whole or self.record.grid is not None or self.record.base:
            return None
        return combs.find(self.record.x)

    @cached_property
    def even(self) -> bool:
        """Whether the values lie on an even grid with few enough cells."""
        return self.record.step > 0

    def smooth(self, fit: Fit, name: str) -> list[Candidate]:
        """Returns the grid or the density of a fit, without its atoms and with them."""
        none = np.zeros_like(fit.atoms)
        needed = isinstance(fit.view, Points) and self._coarse(fit.view, none)[fit.atoms].any()
        masks = ([] if needed else [none]) + ([fit.atoms] if fit.atoms.any() else [])
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

        A list that would copy rows beside the atoms counts as many free numbers as there are rows:
        a spike does not make a list of the density around it.
        """
        copied = self.sample.rows * int(not _repeated(self.sample.counts[~fit.atoms]))
        scores, strength = candidates.ordered_scores(beyond, self.escape, self.trials)
        found = [_candidate("ordered", scores, LISTED + copied, (fit, strength))]
        if len(self.record.values) <= MOST_LEVELS and not self.record.time:
            scores = candidates.level_scores(beyond, self.escape, self.trials)
            size = len(self.record.values) - 1
            found.append(_candidate("levels", scores, size + copied, (fit, 0.5)))
        return found

    def entries(self) -> list[Candidate]:
        """Returns all candidates.

        Real numbers compete with a grid only where the resolution varies along it: else they have
        the masses of the same cells, but for the ends.
        """
        fit = self.fit(self.even)
        even = self.even and self._counted(fit)
        fit = self.fit(False) if self.even and not even else fit
        found = self.smooth(fit, "grid" if even else "real")
        if even and self.record.resolution.digits:
            view = self.view(fit.scale, False)
            found += self.smooth(Fit(fit.scale, view, self._found(view)), "real")
        listed = _repeated(self.sample.counts)
        return found + (self.lists(fit, found[0].scores) if listed else [])

    def _counted(self, fit: Fit) -> bool:
        """Whether the values of a grid are counted, as integers and times are, and not measured.

        Decimals of which most rows beside the atoms have one of their own are measured: a density
        has the same masses, and is in the units of the column.
        """
        if self.record.values.dtype.kind != "f" or self.record.step == 1:
            return True
        return _repeated(self.sample.counts[~fit.atoms])


def _repeated(counts: Counts) -> bool:
    """Whether most rows have values that others have, too; else a list would copy the rows."""
    return int((counts == 1).sum()) * 2 < int(counts.sum())


def _candidate(name: str, scores: Numbers, free: int, made: object) -> Candidate:
    return Candidate(name, scores, free, ORDER.index(name), made)
