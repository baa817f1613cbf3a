"""The weights of several training runs side by side: matrices in one tensor, vectors in another.

So that what one operation does to all of them, such as a step of the optimizer, is one operation.
The runs' own tensors are views of these: whatever looks at a run finds it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nits.training.loop import Loop

ALIGNED = 16
"""Numbers to whose multiples the place of every tensor is rounded: whichever runs are together,
each has its numbers at the same places in vectors of the CPU, and so the same roundings."""

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW remembers of each weight."""


class Side:
    """Tensors of one kind, matrices or vectors, of K runs.

    whole: Shape (K, width), or a vector of all, which optimizers do not let decay.
    parts: Of each of a run's tensors all K, shape (K, …), views of `whole`.
    """

    def __init__(self, each: Sequence[Sequence[Tensor]], *, vectors: bool) -> None:
        sizes = [-(-t.numel() // ALIGNED) * ALIGNED for t in each[0]]
        rows = each[0][0].new_zeros(len(each), sum(sizes))
        self.rows = rows.detach()
        self.whole = self.rows.view(-1) if vectors else self.rows
        self.shapes = [t.shape for t in each[0]]
        self.cuts = list(zip(sizes, self.shapes, strict=True))
        self.parts = self.views(self.rows)
        for i, part in enumerate(self.parts):
            part.copy_(torch.stack([own[i].detach() for own in each]))

    def views(self, rows: Tensor) -> list[Tensor]:
        """Returns the places of the parts in a tensor like `rows`."""
        found, start = [], 0
        for size, shape in self.cuts:
            found.append(rows[:, start : start + shape.numel()].unflatten(1, shape))
            start += size
        return found

    def adopt(self, each: Sequence[Sequence[Tensor]]) -> None:
        """Has the tensors of each run be views of these."""
        for k, own in enumerate(each):
            for tensor, part in zip(own, self.parts, strict=True):
                tensor.data = part[k]


class Flat:
    """Weights, gradients, averages and moments of runs whose networks have one shape."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = loops
        self.dims = [p.dim() for p in loops[0].parameters]
        own, averages = [loop.parameters for loop in loops], [loop.averages for loop in loops]
        self.sides, self.average_sides = self._sides(own), self._sides(averages)
        self._adopt(self.sides, own)
        self._adopt(self.average_sides, averages)
        self.weights = [nn.Parameter(side.whole) for side in self.sides]
        self.averages = [nn.Parameter(side.whole) for side in self.average_sides]
        self.grad_rows = [torch.zeros_like(side.rows) for side in self.sides]
        for p, rows in zip(self.weights, self.grad_rows, strict=True):
            p.grad = rows.view_as(p)
        pairs = zip(self.sides, self.grad_rows, strict=True)
        self.gradients = self._in_order(*(side.views(rows) for side, rows in pairs))
        self.moments = {
            name: self._sides([[_moment(loop, p, name) for p in loop.parameters] for loop in loops])
            for name in MOMENTS
        }

    def _some(self, each: Sequence[Sequence[Tensor]], *, vectors: bool) -> list[list[Tensor]]:
        """Returns the matrices, or the vectors, of each run."""
        return [
            [t for t, dim in zip(own, self.dims, strict=True) if (dim < 2) == vectors]
            for own in each
        ]

    def _sides(self, each: Sequence[Sequence[Tensor]]) -> list[Side]:
        return [
            Side(self._some(each, vectors=vectors), vectors=vectors) for vectors in (False, True)
        ]

    def _adopt(self, sides: Sequence[Side], each: Sequence[Sequence[Tensor]]) -> None:
        for side, vectors in zip(sides, (False, True), strict=True):
            side.adopt(self._some(each, vectors=vectors))

    def _in_order(self, matrices: Sequence[Tensor], vectors: Sequence[Tensor]) -> list[Tensor]:
        """Returns both in the order of a run's parameters."""
        sides = iter(matrices), iter(vectors)
        return [next(sides[dim < 2]) for dim in self.dims]

    def learned(self) -> list[Tensor]:
        """Returns the weights of all runs, shapes (K, …)."""
        return self._in_order(*(side.parts for side in self.sides))

    def averaged(self) -> list[Tensor]:
        """Returns the averages of all runs, shapes (K, …)."""
        return self._in_order(*(side.parts for side in self.average_sides))

    def share_moments(self, optimizer: torch.optim.Optimizer) -> None:
        """Has the optimizer of all, and that of each run, look at the same moments."""
        taken = _taken(self.loops[0])
        counts = [torch.tensor(taken) for _ in self.weights]
        for i, p in enumerate(self.weights):
            moments = {name: self.moments[name][i].whole for name in MOMENTS}
            optimizer.state[p] = {"step": counts[i], **moments}
        ordered = {
            name: self._in_order(*(side.parts for side in sides))
            for name, sides in self.moments.items()
        }
        for k, loop in enumerate(self.loops):
            for i, p in enumerate(loop.parameters):
                own = {name: ordered[name][i][k] for name in MOMENTS}
                loop.optimizer.state[p] = {"step": counts[self.dims[i] < 2], **own}

    def take_gradients(self, grads: Sequence[Tensor]) -> None:
        """Takes the gradients of all runs' weights, shapes (K, …)."""
        torch._foreach_copy_(self.gradients, list(grads))

    def clip(self, most: float) -> list[float]:
        """Scales the gradient of each run to a norm of at most so much; returns what it was."""
        squares = [torch.stack([torch.dot(own, own) for own in rows]) for rows in self.grad_rows]
        norms = torch.stack(squares).sum(0).sqrt()
        factors = (most / (norms + 1e-6)).clamp(max=1.0).unsqueeze(1)
        for rows in self.grad_rows:
            rows.mul_(factors)
        found: list[float] = norms.tolist()
        return found

    @contextmanager
    def without(self, undone: Sequence[int]) -> Iterator[None]:
        """Has some runs keep all of their numbers in a block of code."""
        sides = [*self.sides, *self.average_sides, *(s for m in self.moments.values() for s in m)]
        before = [side.rows[list(undone)].clone() for side in sides] if undone else []
        yield
        for side, was in zip(sides, before, strict=False):
            side.rows[list(undone)] = was


def release(loop: Loop) -> None:
    """Gives a run tensors of its own again."""
    for p in (*loop.parameters, *loop.averages):
        p.data = p.data.clone()
    for state in loop.optimizer.state.values():
        state.update({name: value.clone() for name, value in state.items()})


def _taken(loop: Loop) -> float:
    """Returns how many steps the optimizer of a run has taken."""
    states = list(loop.optimizer.state.values())
    return float(states[0]["step"]) if states else 0.0


def _moment(loop: Loop, p: nn.Parameter, name: str) -> Tensor:
    """Returns what the optimizer of a run remembers of a weight."""
    state = loop.optimizer.state.get(p)
    return torch.zeros_like(p) if not state else state[name]
