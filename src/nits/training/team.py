"""Networks of one shape that take each step together, in one pass for all of them.

The weights of K networks lie side by side in two tensors, one of matrices and one of vectors, so
that the optimizer, the average and the norm of the gradient are one operation each. A network has
the same bits as if it had been trained alone: no number of one depends on those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor

from nits.model import side_by_side
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.side_by_side import LANES, SideBySide
from nits.pnn.random import another
from nits.training.crew import Crew
from nits.training.flat import Flat, release
from nits.training.loop import Loop
from nits.training.optimizers import AdamW
from nits.training.rows import Rows, Shuffled

MOST_NUMBERS = 2**24
"""Numbers of the lines of a network's rows up to which there is memory for those of several."""

EVALUATED_AT_ONCE = 2**20
"""PNN weights of a network's validation rows that are held at once."""


def key(loop: Loop) -> tuple[Any, ...] | None:
    """Returns what runs must share to be a team; None if this one cannot be in any."""
    shape, recipe = side_by_side.shape(loop.model), loop.recipe
    plain = type(recipe.optimizer) is AdamW and recipe.schedule is None
    plain = plain and not recipe.hide and recipe.parts == 1
    if shape is None or not plain or not isinstance(loop.feed, Shuffled) or not loop.ranks.alone:
        return None
    if not fits(loop.model, len(loop.train)):
        return None
    held_out = None if loop.held_out is None else len(loop.held_out)
    weighted = loop.train.weight is not None
    return (*shape, recipe, loop.budget, loop.batch, len(loop.train), held_out, weighted)


def fits(density: Density, rows: int) -> bool:
    """Returns whether there is memory for the lines of so many rows, and of several networks."""
    return rows * side_by_side.width(density) <= MOST_NUMBERS


class Team(Crew):
    """Runs of networks of one shape; see `key`."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        super().__init__(loops)
        self.generators = [torch.Generator(loop.model.like.device) for loop in loops]
        self.parts = [_part(loop) for loop in loops]
        self.lines = [_lines(loop, loop.train) for loop in loops]
        self.weights = [loop.train.weights for loop in loops]
        self.kept: list[Tensor] = []
        self.kept_weights: list[Tensor | None] = []
        if loops[0].held_out is not None:
            rows = [loop.looked_at() for loop in loops]
            self.kept = [_lines(loop, some) for loop, some in zip(loops, rows, strict=True)]
            self.kept_weights = [some.weights for some in rows]
        self._join()

    def _join(self) -> None:
        """Puts rows, weights, averages and moments of those that go on side by side."""
        lead = self.loops[0]
        self.every_line = torch.cat(self.lines)
        self.starts = [0, *accumulate(len(own) for own in self.lines)]
        self.flat = Flat(self.loops)
        self.optimizer = lead.recipe.optimizer.build(
            self.flat.weights,
            self.flat.averages,
            rate=lead.recipe.learning_rate,
            weight_decay=lead.recipe.weight_decay,
        )
        self.flat.share_moments(self.optimizer)
        densities = [cast(NITS, loop.model) for loop in self.loops]
        self.model = SideBySide(densities, self.flat.learned())
        self.model.net.train()
        self.model.net.generators = self.generators
        self.average = SideBySide(densities, self.flat.averaged())
        self.average.net.eval()

    def leave(self, gone: Sequence[Loop]) -> None:
        """Has some go on no longer; the others close ranks."""
        stay = [k for k, loop in enumerate(self.loops) if loop not in gone]
        for loop in gone:
            release(loop)
        self.loops = [self.loops[k] for k in stay]
        for name in ("generators", "parts", "lines", "weights", "kept", "kept_weights"):
            own = getattr(self, name)
            setattr(self, name, [own[k] for k in stay] if own else [])
        if self.loops:
            self._join()

    def advance(self, progress: float) -> None:
        """Takes one step of all; one whose loss or gradient is not finite is counted and undone."""
        lead = self.loops[0]
        rate = lead.recipe.rate(lead.step, progress, lead.counted)
        for optimizer in (self.optimizer, *(loop.optimizer for loop in self.loops)):
            for group in optimizer.param_groups:
                group["lr"] = rate
        self.reseed()
        values = self._gradient()
        norms = self.flat.clip(lead.recipe.clip)
        for loop in self.loops:
            loop.whole = False
        every = zip(self.loops, values, norms, strict=True)
        undone = [k for k, (loop, *own) in enumerate(every) if not loop.counts(*own)]
        with self.flat.without(undone):
            self.optimizer.step()
            lead.recipe.optimizer.move_average(self.flat.averages, self.flat.weights, lead.decay())
        for loop in self.loops:
            loop.whole = True

    def reseed(self) -> None:
        """Seeds dropout for the next step, as each network alone does."""
        for loop, source, part in zip(self.loops, self.generators, self.parts, strict=True):
            source.manual_seed(another(loop.step_seed(), part))

    def _gradient(self) -> list[float]:
        """Sets the gradients of the next batches' mean log-likelihoods, and returns these."""
        index = [cast(Shuffled, loop.feed).index(loop.step) for loop in self.loops]
        places = torch.cat([at + start for at, start in zip(index, self.starts, strict=False)])
        lines = self.every_line[places].unflatten(0, (len(self.loops), -1))
        value = _means(self.model.log_prob(lines), self._taken(index))
        parameters = list(self.model.net.parameters())
        grads = torch.autograd.grad(-value.sum(), parameters, materialize_grads=True)
        self.flat.take_gradients(grads)
        found: list[float] = value.detach().tolist()
        return found

    def _taken(self, index: Sequence[Tensor]) -> Tensor | None:
        """Returns the weights of rows, shape (K, N); None if all count the same."""
        pairs = zip(self.weights, index, strict=True)
        found = [weight[at] for weight, at in pairs if weight is not None]
        return torch.stack(found).to(self.every_line) if found else None

    def validated(self) -> list[float | None]:
        """Returns the mean log-likelihoods of their validation rows."""
        if not self.kept:
            return [None] * len(self.loops)
        lines = torch.stack(self.kept)
        rows = EVALUATED_AT_ONCE // self.loops[0].model.weights_per_row
        at_once = max(LANES, rows - rows % LANES)
        with torch.no_grad():
            parts = [self.average.log_prob(some) for some in lines.split(at_once, 1)]
        weights = [own for own in self.kept_weights if own is not None]
        return _means(
            torch.cat(parts, 1).double(), torch.stack(weights).double() if weights else None
        ).tolist()


def _means(log_prob: Tensor, weight: Tensor | None) -> Tensor:
    """Returns the mean of each network's rows, shape (K,), with weights or without."""
    if weight is None:
        return log_prob.mean(1)
    return (weight * log_prob).sum(1) / weight.sum(1)


def _part(loop: Loop) -> int:
    """Returns the number of the network among the parts of its density; see `Density.reseed`."""
    net = side_by_side.network(loop.model)
    return next(k for k, part in enumerate(loop.model.modules()) if part is net)


def _lines(loop: Loop, rows: Rows) -> Tensor:
    """Returns what a network reads of rows; see `side_by_side.lines`."""
    density = cast(NITS, loop.model)
    batches = rows.batches(4096, density.like)
    return torch.cat([side_by_side.lines(density, batch.x, batch.context) for batch in batches])
