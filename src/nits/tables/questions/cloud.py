"""Particles of all members of a model: estimates, their standard errors, and rows.

A mixture's member is one more thing that is drawn: each member has its own particles, which count
by the member's weight. Where nothing has to be drawn before the last condition, one particle per
member gives the exact value.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, cast

import torch
from torch import Tensor

from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.mixture import Mixture
from nits.model.stacked import Stacked, alike
from nits.model.tempered import Tempered
from nits.pnn.random import another
from nits.tables.questions.laws import Drawn
from nits.tables.questions.particles import Shape, Walk, effective
from nits.tables.questions.query import Query

BATCHES = 16
"""Independent randomizations, from which standard errors are found."""

PARTICLES = 4096
"""Particles of an answer, in all batches and members together."""

PILOT, PILOTS = 128, 16
"""Particles, of so many rows at most, that tell whether a companion helps."""

AHEAD = 1.5
"""How many times the effective particles a companion must leave: it takes about twice as long."""


class Cloud:
    """Particles of a question's members.

    walks, log_shares: The particles of each member, and the logarithm of its weight.
    exact: Whether nothing was drawn, so that estimates have no error.
    """

    def __init__(self, walks: list[Walk], log_shares: list[float], exact: bool) -> None:
        self.walks, self.log_shares, self.exact = walks, log_shares, exact

    def log_evidence(self) -> Tensor:
        """Returns log-estimates of the probability of what is given, shape (R, B)."""
        return torch.stack(self._parts()).logsumexp(0)

    def _parts(self) -> list[Tensor]:
        return [
            share + walk.log_weights.logsumexp(-1) - math.log(walk.shape.size)
            for walk, share in zip(self.walks, self.log_shares, strict=True)
        ]

    def log_weights(self) -> Tensor:
        """Returns the log-weights of all particles, members side by side, shape (R, B, Σ size)."""
        parts = [
            share + walk.log_weights - math.log(walk.shape.size)
            for walk, share in zip(self.walks, self.log_shares, strict=True)
        ]
        return torch.cat(parts, -1)

    def column(self, i: int) -> Drawn:
        """Returns the values of a column of all particles, each of shape (R, B, Σ size).

        The particles have passed it, or have come to it, so that it is drawn now.
        """
        parts = [walk.drawn(walk.order.index(i)) for walk in self.walks]
        pairs = list(zip(parts, (walk.shape for walk in self.walks), strict=True))
        numbers = [part.numbers.reshape(shape) for part, shape in pairs]
        tails = [part.tails.reshape(shape) for part, shape in pairs]
        return Drawn(torch.cat(numbers, -1), torch.cat(tails, -1))

    def ess(self) -> Tensor:
        """Returns the effective number of particles, at the worst place on the way, shape (R,)."""
        if self.exact:
            return torch.full((self.walks[0].shape.rows,), torch.inf, dtype=torch.float64)
        log_weights = self.log_weights()
        last = effective(log_weights.flatten(1))
        sizes = torch.tensor([walk.shape.size for walk in self.walks], dtype=torch.float64)
        before = torch.stack([walk.effective.mean(1) for walk in self.walks], 1)
        least = torch.minimum(last, (before * sizes).sum(1) / sizes.sum())
        return least * log_weights.shape[1] * log_weights.shape[2]

    def lineages(self) -> Tensor:
        """Returns the effective number of particles that go back to different ones, shape (R,).

        Of them, other than of `ess`, there are few where resampling has kept few.
        """
        log_weights = self.log_weights().flatten(1)
        weights = (log_weights - log_weights.amax(1, keepdim=True)).exp()
        start, parts = 0, []
        for walk in self.walks:
            rows, batches, size = walk.shape
            part = weights.reshape(rows, batches, -1)[..., start : start + size].flatten()
            sums = torch.zeros_like(part).index_add(0, walk.ancestor, part)
            parts.append(sums.reshape(rows, -1))
            start += size
        each = torch.cat(parts, 1)
        return each.sum(1) ** 2 / (each**2).sum(1)


def members(density: Density) -> list[tuple[float, Density]]:
    """Returns the members of a mixture, each of which makes whole rows, or the one density."""
    if isinstance(density, Tempered) or not isinstance(density, Mixture):
        return [(0.0, density)]
    return [
        (float(share) + inner, member)
        for share, model in zip(density.log_weights, density.members, strict=True)
        for inner, member in members(model)
    ]


class Part(NamedTuple):
    """Members of a model whose particles walk together: networks of one shape, or one density.

    density: They, or it.
    log_shares: The logarithm of each one's weight in the model.
    """

    density: Density | Stacked
    log_shares: list[float]

    @property
    def log_share(self) -> float:
        """The logarithm of their weights' sum."""
        return float(torch.tensor(self.log_shares, dtype=torch.float64).logsumexp(0))

    def started(
        self, query: Query, shape: tuple[int, int], sizes: list[int], source: torch.Generator
    ) -> Walk:
        """Returns particles at the first column.

        shape: How many rows and batches there are.
        sizes: How many particles of a batch each member has.
        """
        whole = Shape(*shape, sum(sizes))
        if isinstance(self.density, Density):
            return Walk(self.density, query, whole, source)
        member = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        walk = Walk(self.density, query, whole, source, member)
        share = torch.tensor(self.log_shares, dtype=torch.float64).log_softmax(0)
        drawn = torch.tensor(sizes, dtype=torch.float64).log() - math.log(whole.size)
        walk.log_weights = walk.log_weights + (share - drawn)[member]
        return walk


def parts(density: Density) -> list[Part]:
    """Returns the members of a mixture, or the one density, those of one shape together."""
    every = members(density)
    found = []
    for places in alike([member for _, member in every]):
        some = [every[k][1] for k in places]
        stack = some[0] if len(some) == 1 else Stacked(cast("list[NITS]", some))
        found.append(Part(stack, [every[k][0] for k in places]))
    return found


def walked(  # noqa: PLR0913 - each has its line
    density: Density,
    query: Query,
    seed: int,
    *,
    total: int = PARTICLES,
    batches: int = BATCHES,
    column: int | None = None,
    drawing: bool = False,
) -> Cloud:
    """Returns particles that have passed all conditions.

    total: How many particles there are for each row, in how many batches.
    column: One that all particles shall have come to, or passed.
    drawing: Whether the draws are wanted, so that one particle is not enough.
    """
    every = parts(density)
    exact = not drawing and all(deterministic(query, part.density, column) for part in every)
    if exact:
        return _walked(every, query, seed, None, column)
    return _walked(every, proposed(every, query, seed), seed, (total, batches), column)


def _walked(
    every: list[Part],
    query: Query,
    seed: int,
    count: tuple[int, int] | None,
    column: int | None = None,
) -> Cloud:
    """Returns particles that have passed all conditions, and a column.

    count: How many there are for each row, and in how many batches; None for one of each member.
    """
    total, batches = count or (0, 1)
    shares = None if count is None else allotted(every, query)
    walks = []
    for k, part in enumerate(every):
        each = [0.0] * len(part.log_shares) if shares is None else shares[k]
        sizes = [max(1, round(total / batches * share)) for share in each]
        source = torch.Generator().manual_seed(another(seed, k))
        walk = part.started(query, (query.rows, batches), sizes, source)
        rank = 0 if column is None else walk.order.index(column)
        walks.append(walk.to(max(query.last(walk.order), rank)))
    return Cloud(walks, [part.log_share for part in every], exact=count is None)


def proposed(every: list[Part], query: Query, seed: int) -> Query:
    """Returns a question without its companion, unless a few particles show that it helps.

    That depends on what is given and not on events, so that parts of an event are found as the
    whole of it is.
    """
    orders = [part.density.order.tolist() for part in every]
    alone = replace(query, companion=None)
    if query.companion is None or all(query.told(o) <= query.leading(o) for o in orders):
        return alone
    pair = [replace(one.take(slice(PILOTS)), events={}) for one in (query, alone)]
    with torch.no_grad():
        sizes = [float(_walked(every, one, seed, (PILOT, 1)).ess().mean()) for one in pair]
    return query if sizes[0] > AHEAD * sizes[1] else alone


def deterministic(query: Query, density: Density | Stacked, column: int | None = None) -> bool:
    """Returns whether nothing is drawn before the last condition, and before a column."""
    order = density.order.tolist()
    leading = query.leading(order)
    return query.last(order) <= leading + 1 and (column is None or order.index(column) <= leading)


def allotted(every: list[Part], query: Query) -> list[list[float]]:
    """Returns shares of the particles for each member: as likely as it is, given leading columns.

    Any shares give unbiased estimates; with these, fewer particles go to waste.
    """
    if not any(query.leading(part.density.order.tolist()) for part in every):
        return [[math.exp(log_share) for log_share in part.log_shares] for part in every]
    found = []
    for part in every:
        sizes = [1] * len(part.log_shares)
        walk = part.started(query, (query.rows, 1), sizes, torch.Generator().manual_seed(0))
        told = walk.to(query.leading(walk.order)).log_weights[:, 0]
        found.append(part.log_share - math.log(len(sizes)) + told)  # (R, members)
    each = torch.cat(found, 1).nan_to_num(neginf=-1e30).softmax(1).mean(0)
    shares = each.split([len(part.log_shares) for part in every])
    return [share.tolist() for share in shares]


def ratio(part: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ratios of means over batches, and their standard errors, both of shape (R,).

    part, whole: Logarithms of the batches' means, shape (R, B), or (R, 1) where they are exact.
    """
    top = whole.amax(1, keepdim=True)
    if bool((top == -torch.inf).any()):
        raise ValueError(
            "what is given must be possible, but has probability zero under this model; "
            "give less of it."
        )
    a, b = torch.broadcast_tensors((part - top).exp(), (whole - top).exp())
    return mean_ratio(a, b)


def mean_ratio(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ratios of the means of a and b over batches, shape (R, B), and standard errors."""
    found = a.mean(1) / b.mean(1)
    count = a.shape[1]
    if count < 2:
        return found, torch.zeros_like(found)
    rest = (a - found.unsqueeze(1) * b) / b.mean(1, keepdim=True)
    return found, ((rest**2).sum(1) / (count * (count - 1))).sqrt()
