"""Several NITS of one shape, evaluated together: the matrices of their networks are one batch.

A small network takes longer to call than to compute, so K of them are scored in one pass, each on
rows of its own. What a network reads of a row does not change while it learns, so it is computed
once: a line of features, of the context, of the straight-line guess (29), and of the values.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nits.heads import Given
from nits.model.density import Density
from nits.model.joint import NITS
from nits.weights import Guided, Heard, MaskedMLP, stacked_stepper

LANES = 16
"""Rows come in multiples of so many, or some are added and dropped again: each then has the same
place in the CPU's vectors, and the same roundings, whatever networks there are beside its own."""


def network(density: Density) -> MaskedMLP | None:
    """Returns the network of a density whose like can be side by side; None if it cannot."""
    return stacked_stepper.network(density.weights) if type(density) is NITS else None


def shape(density: Density) -> tuple[Any, ...] | None:
    """Returns what densities must share to be side by side; None if this one cannot be."""
    net = network(density)
    if net is None or not isinstance(density, NITS):
        return None
    sizes = tuple(sorted(net.sizes().items(), key=lambda pair: pair[0]))
    kinds = tuple((*head.kind, head.knots, head.optional) for head in density.ordered)
    ends = tuple(density.ends.low.flatten().tolist() + density.ends.high.flatten().tolist())
    own = net.inputs, net.outputs, net.context, tuple(density.order.tolist())
    return (*own, sizes, kinds, ends, density.like.dtype, density.like.device)


def width(density: Density) -> int:
    """Returns how many numbers a line has: what a network reads of a row, and its values."""
    net = network(density)
    return 0 if net is None else sum(net.inputs) + net.context + 2 * density.columns


class SideBySide:
    """The densities of K networks of one shape, each of its own rows.

    densities: Of one `shape`.
    parameters: Those of all, shapes (K, …), in the order of a network's parameters.
    """

    def __init__(self, densities: Sequence[NITS], parameters: Sequence[Tensor]) -> None:
        self.first, self.count = densities[0], len(densities)
        found = network(self.first)
        if found is None:
            raise TypeError(
                "densities side by side must be NITS-MLP without codes, but these are others; "
                "train them one by one."
            )
        self.net = copy.deepcopy(found)
        for (name, _), value in zip(found.named_parameters(), parameters, strict=True):
            place, _, last = name.rpartition(".")
            setattr(self.net.get_submodule(place), last, nn.Parameter(value))
        guided = [d.weights for d in densities if isinstance(d.weights, Guided)]
        owner = guided[0].owner if guided else torch.empty(0, dtype=torch.long)
        self.moved = (owner >= 0).nonzero().flatten()
        self.owner = owner[self.moved]
        self.widths = [sum(self.net.inputs), self.net.context, *[len(self.first.heads)] * 2]

    def log_prob(self, lines: Tensor) -> Tensor:
        """Returns the log-density of rows, shape (K, N), from their lines, shape (K, N, width)."""
        count = lines.shape[1]
        if over := -count % LANES:
            lines = torch.cat([lines, lines[:, :1].expand(-1, over, -1)], 1)
        return self._log_prob(lines)[:, :count].contiguous()

    def _log_prob(self, lines: Tensor) -> Tensor:
        features, context, guess, values = lines.mT.split(self.widths, 1)
        theta = self.net(features, context if self.net.context else None)
        flat = theta.transpose(0, 1).reshape(theta.shape[1], -1)
        guess, values = (t.transpose(0, 1).flatten(1) for t in (guess, values))
        if len(self.moved):
            flat = flat.index_add(0, self.moved, guess[self.owner])
        terms = []
        groups = self.first.groups
        for group, part in zip(groups, flat.split([g.weights for g in groups]), strict=True):
            ends = (end[group.columns] for end in (self.first.ends.low, self.first.ends.high))
            given = Given(part.unflatten(0, (group.columns.stop - group.columns.start, -1)), *ends)
            terms.append(group.head.log_prob(given, values[group.columns]))
        return torch.cat(terms).sum(0).view(self.count, -1)


def lines(density: NITS, x: Tensor, context: Tensor | None) -> Tensor:
    """Returns what a network reads of rows x, shape (N, D), and their values, shape (N, width)."""
    values = x.t()[density.order]
    about = None if context is None else context.t()
    with torch.no_grad():
        features = density.reading(values)
        guess = torch.zeros_like(values)
        if isinstance(density.weights, Guided):
            guess = density.weights.guess(features, about)
        if isinstance(density.weights, Guided | Heard):
            about = density.weights.hear(about)
        parts = [features, *([] if about is None else [about]), guess, values]
        return torch.cat(parts).t().contiguous()
