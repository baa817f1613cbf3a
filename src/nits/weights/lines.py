"""Shrunk straight lines: each target on the features of the columns before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nits.chunks import slices
from nits.weights.shrinkage import Folds, Sums, added

REACH = 1.5
"""Values further beyond the middle 80 % than this, times its width, are moved to that limit."""

SAMPLE = 1 << 14
"""Values whose quantiles decide the limits."""

BUDGET = 5e10
"""Operations for all targets with missing values: each pattern of them needs its own sums."""

FEWEST = 64
"""Features looked at for a target with missing values, however many such targets there are."""

ROWS = 5_000
"""Rows looked at for a target with missing values, however many such targets there are."""

WIDE = 500
"""More features have fewer folds, since each takes long."""

CHUNK = 1 << 20
"""Numbers held at once in passes over rows."""


def fitted(
    features: Tensor, targets: Tensor, before: Sequence[int], weight: Tensor | None = None
) -> Tensor:
    """Returns the coefficients, shape (D, F + 1), constant last, of the best shrunk lines.

    Values far out are moved to a limit before lines are fitted and compared: no row decides alone.

    features: Finite values, shape (F, N); those of columns modelled earlier come first.
    targets: Values to predict, shape (D, N); rows where a target is NaN are left out for it.
    before: How many of the features, the first ones, each target may use.
    weight: Weights of the rows, shape (N,).
    """
    rows = features.new_ones(features.shape[1]) if weight is None else weight
    rows = rows.double()
    x, y = Scaled.of(features, rows), Scaled.of(targets, rows)
    limit = torch.tensor(list(before), dtype=torch.long, device=features.device)
    lines = features.new_zeros(len(targets), len(features), dtype=torch.float64)
    constant = torch.zeros_like(y.mean)
    for part in _parts(Table(x, y, rows, limit)):
        found, at = part.folds().best()
        lines[part.targets.unsqueeze(1), part.features] = found
        constant[part.targets] = at
    scale = torch.where(y.deviation.isinf(), 0.0, y.deviation)
    lines *= scale.unsqueeze(1) / x.deviation
    constant = y.mean + scale * constant - lines @ x.mean
    return torch.cat([lines, constant.unsqueeze(1)], 1)


class Scaled(NamedTuple):
    """Values moved within limits, with mean zero and standard deviation one; or all zero."""

    values: Tensor  # as they came, shape (F, N); the others have shape (F,)
    low: Tensor
    high: Tensor
    mean: Tensor
    deviation: Tensor  # infinite where the values are all the same

    @classmethod
    def of(cls, values: Tensor, weight: Tensor) -> Scaled:
        """Finds the limits, means and deviations of values, shape (F, N), NaN left out."""
        known = [(v[~v.isnan()], weight[~v.isnan()]) for v in values]
        facts = torch.tensor([_facts(*pair) for pair in known], dtype=torch.float64)
        return cls(values, *facts.reshape(-1, 4).t().to(values.device))

    def at(self, which: Tensor, rows: Tensor) -> Tensor:
        """Returns the values of some features and rows, in float64."""
        low, high, mean, deviation = (a[which].unsqueeze(1) for a in self[1:])
        values = self.values[which.unsqueeze(1), rows].double()
        return (values.clamp(low, high) - mean) / deviation


def _facts(values: Tensor, weight: Tensor) -> tuple[float, float, float, float]:
    """Returns the limits, mean and standard deviation of values, shape (N,)."""
    values, total = values.double(), weight.sum()
    if not total > 0:
        return 0.0, 0.0, 0.0, math.inf
    few = values[:: 1 + len(values) // SAMPLE]
    middle = few.median()
    others = few[few != middle]  # a rare category is no outlier
    if len(others) == 0:
        others = values[values != middle]
    if len(others) == 0:
        return float(middle), float(middle), float(middle), math.inf
    others = others.sort().values
    low = torch.minimum(middle, others[math.floor(0.1 * (len(others) - 1))])
    high = torch.maximum(middle, others[math.ceil(0.9 * (len(others) - 1))])
    room = REACH * (high - low)
    values = values.clamp(low - room, high + room)
    mean = (weight * values).sum() / total
    deviation = float(((weight * (values - mean).square()).sum() / total).sqrt())
    varied = math.isfinite(deviation) and deviation > 1e-12 * float(mean.abs())
    return float(low - room), float(high + room), float(mean), deviation if varied else math.inf


class Table(NamedTuple):
    """Features, targets, weights of the rows and how many features each target may use."""

    x: Scaled
    y: Scaled
    weight: Tensor
    before: Tensor

    def sums(self, features: Tensor, targets: Tensor, rows: Tensor, scale: Tensor) -> Sums:
        """Returns the sums of some features, targets and rows; weights are multiplied by scale."""
        p, d = len(features) + 1, len(targets)
        shapes = ((p, p), (p, d), (d,))
        total = [self.weight.new_zeros(shape) for shape in shapes]
        for part in slices(len(rows), max(1, CHUNK // (p + d))):
            w = self.weight[rows[part]] * scale
            a = torch.cat([self.x.at(features, rows[part]), torch.ones_like(w).unsqueeze(0)])
            b = self.y.at(targets, rows[part])
            weighted = a * w
            total[0] += weighted @ a.t()
            total[1] += weighted @ b.t()
            total[2] += b.square() @ w
        return Sums(*total)


class Part(NamedTuple):
    """Targets with values in the same rows."""

    table: Table
    features: Tensor  # which ones, shape (p,)
    targets: Tensor  # which ones, shape (D,)
    rows: list[Tensor]  # of each fold
    used: Tensor  # features used if a fold is held out, and, last, if none is, shape (K + 1, p)

    def folds(self) -> Folds:
        """Returns the sums of the folds, weights scaled to sum to the effective number of rows."""
        weight = self.table.weight[torch.cat(self.rows)]
        scale = weight.sum() / weight.square().sum()
        later = self.features.unsqueeze(1) >= self.table.before[self.targets]

        def anew(which: Sequence[int]) -> Sums:
            rows = torch.cat([self.rows[k] for k in which])
            return self.table.sums(self.features, self.targets, rows, scale)

        if self._sums() > len(self.features) * len(weight):
            return Folds(len(self.rows), anew, later, self.used)
        each = [anew([k]) for k in range(len(self.rows))]
        return Folds(len(each), lambda which: added([each[k] for k in which]), later, self.used)

    def _sums(self) -> int:
        """Returns how many numbers the sums of all folds are.

        If they are more than the features' own, they are made anew whenever they are needed, which
        takes little beside the regressions on so many features.
        """
        p = len(self.features) + 1
        return len(self.rows) * p * (p + len(self.targets))

    def screened(self, most: int) -> Part:
        """Keeps the features most correlated with the one target, in training rows of each fold."""
        sums = torch.stack([self._correlations(rows) for rows in self.rows])
        n, y, x, xx, xy = torch.cat([sums.sum(0) - sums, sums.sum(0, keepdim=True)]).unbind(1)
        strength = (xy - x * y / n).square() / (xx - x.square() / n)
        top = strength.nan_to_num(0.0, 0.0, 0.0).topk(most, 1).indices
        used = torch.zeros_like(self.used).scatter(1, top, 1.0)
        kept = used.any(0)
        return self._replace(features=self.features[kept], used=used[:, kept])

    def _correlations(self, rows: Tensor) -> Tensor:
        """Returns sums of w, wy, wx, wx² and wxy for each feature x, shape (5, p)."""
        w, y = self.table.weight[rows], self.table.y.at(self.targets, rows)[0]
        x = self.table.x.at(self.features, rows)
        plain = torch.stack([w.sum(), w @ y]).unsqueeze(1).expand(-1, len(x))
        return torch.cat([plain, torch.stack([x @ w, x.square() @ w, x @ (w * y)])])


def _parts(table: Table) -> Iterator[Part]:
    """Yields the targets by the rows where they have values.

    All but the largest group share the budget: of many rows and features only some are looked at.
    """
    present = ~table.y.values.isnan() & (table.weight > 0)
    groups: dict[bytes, list[int]] = {}
    for target, pattern in enumerate(present):
        groups.setdefault(pattern.cpu().numpy().tobytes(), []).append(target)
    largest = max(groups.values(), key=len, default=[])
    share = BUDGET / max(1, len(present) - len(largest))
    most = max(FEWEST, int((share / 30) ** (1 / 3)))  # 15 penalties, 5 folds: 15 × 5 × p³ / 3
    for group in groups.values():
        rows = present[group[0]].nonzero().flatten()
        p = int(table.before[group].max())
        if len(rows) == 0:
            continue
        if group is largest:
            yield _part(table, group, rows)
            continue
        rows = rows[:: max(1, min(len(rows) // ROWS, round(len(rows) * min(p, most) ** 2 / share)))]
        for targets in [group] if p <= most else [[target] for target in group]:
            part = _part(table, targets, rows)
            yield part if len(part.features) <= most else part.screened(most)


def _part(table: Table, targets: list[int], rows: Tensor) -> Part:
    """Returns some targets with values in some rows, which are dealt out to folds."""
    # At random, so that no rhythm of the rows matters, but always the same.
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0)).to(rows.device)
    wide = int(table.before[targets].max()) > WIDE
    count = 10 if len(rows) < 1_000 else 3 if wide or len(rows) >= 20_000 else 5
    folds = [rows[order[k::count]] for k in range(min(count, len(rows)))]
    features = torch.arange(int(table.before[targets].max()), device=rows.device)
    used = table.weight.new_ones(len(folds) + 1, len(features))
    return Part(table, features, torch.tensor(targets, device=rows.device), folds, used)
