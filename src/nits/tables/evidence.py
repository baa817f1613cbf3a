"""What a column is, decided by the likelihood of values held out from it."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
import numpy as np
from numpy.typing import NDArray
from nits.tables import atoms as spikes
from nits.tables import candidates, grids, resolution, samples, scales, tails
from nits.tables.decisions import *
from nits.tables.samples import Sample, Trial
from nits.tables.views import Cells, Points, View

MOST_CELLS = 2**16
MOST_LEVELS = 1000
SMOOTH = 95
NEGLIGIBLE = 0.01
CLIP = 10.0

@dataclass(frozen=True)
class Candidate:
    name: str
    scores: Any
    free: int
    extra: Any = None

class Trials:
    def __init__(self, sample):
        self.list = sample.trials()
        self.w = np.concatenate([t.rows*t.factor for t in self.list]).astype(float)
        self.v = np.concatenate([t.rows*t.factor**2 for t in self.list]).astype(float)
        self.n = self.w.sum()
    def mean(self, s): return float(s @ self.w / self.n)
    def lead(self, a, b):
        d = a-b
        m = self.mean(d)
        c = np.clip(d, -CLIP, CLIP); c = c-self.mean(c)
        return m, math.sqrt(float(c**2 @ self.v))/self.n

def tied(tr, best, other):
    m, se = tr.lead(best, other)
    return m <= max(se, NEGLIGIBLE)

def decide(values, kind=None, verbose=False, use_atoms=True):
    base = samples.base(values)
    x = samples.numbers(values, base)
    grid = grids.find(values)
    all_x, all_counts = np.unique(x, return_counts=True)
    integer = values.dtype.kind in 'iuM'
    eps = 0.0 if integer else float(np.finfo(values.dtype).eps)
    res = resolution.find(all_x, grid.width if grid else 0.0, eps)
    sample = Sample.of(x)
    counts = sample.counts
    delta = res.at(sample.x)
    span = sample.x[-1]-sample.x[0]
    escape = np.log(delta) - math.log(span) if np.isfinite(span) else np.log(delta)-np.log(sample.x[-1]/2-sample.x[0]/2)-math.log(2)
    escape = np.minimum(escape, 0.0)
    tr = Trials(sample)
    cells = (all_x[-1]-all_x[0])/grid.width if grid else math.inf
    even = grid is not None and cells < MOST_CELLS
    step = grid.width if even else 0.0
    def view(scale, even=even):
        return Cells.on(scale, sample.x, step) if even else Points.on(scale, sample.x, delta)
    low, high = sample.x[0]-step/2, sample.x[-1]+step/2
    def fit_scales(mask):
        return scales.fitted(sample.x[~mask], counts[~mask], low, high)
    none = np.zeros(len(counts), bool)
    first = fit_scales(none)
    first = [s for s in first if isinstance(s, scales.Asinh)][0]
    at = spikes.find(view(first), counts, -escape) if use_atoms else none
    options = []
    for sc in fit_scales(at):
        v = view(sc)
        options.append((sc, v, candidates.smooth_scores(v, at, tr.list)))
    best = max(options, key=lambda o: tr.mean(o[2]))
    scale, v, s = next(o for o in options if tied(tr, best[2], o[2]))
    at = spikes.find(v, counts, -escape) if use_atoms else none
    cand = []
    plain = candidates.smooth_scores(v, none, tr.list)
    nm = 'grid' if even else 'real'
    cand.append(Candidate(nm, plain, SMOOTH))
    if at.any():
        cand.append(Candidate(nm+' with atoms', candidates.smooth_scores(v, at, tr.list), SMOOTH+int(at.sum()), at))
    if even and res.digits:
        pv = view(scale, False)
        pat = spikes.find(pv, counts, -escape)
        cand.append(Candidate('real', candidates.smooth_scores(pv, none, tr.list), SMOOTH))
        cand.append(Candidate('real with atoms', candidates.smooth_scores(pv, pat, tr.list), SMOOTH+int(pat.sum()), pat))
    seen = 1-(counts == 1).sum()/counts.sum()
    if seen > .5:
        K = len(counts)
        if len(all_x) <= MOST_LEVELS:
            cand.append(Candidate('levels', candidates.level_scores(plain, escape, tr.list), K-1))
        o, k = candidates.ordered_scores(plain, escape, tr.list)
        cand.append(Candidate('ordered', o, SMOOTH, k))
    best = max(cand, key=lambda c: tr.mean(c.scores))
    pool = [c for c in cand if tied(tr, best.scores, c.scores)]
    pick = min(pool, key=lambda c: (c.name.startswith('real'), c.free))
    if verbose:
        print('   scales', [(type(o[0]).__name__, round(tr.mean(o[2]),3)) for o in options])
        print('   cands', [(c.name, round(tr.mean(c.scores),4), c.free, c.extra if c.name=='ordered' else '') for c in cand])
    return pick, scale, grid, res, sample, at
