"""The steps of a mixture's members on the same rows: networks of one shape take them at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.stacked import Stacked, alike
from nits.model.steps import Steps


class Teams:
    """K members that step through N rows together.

    members: The densities, which have one order of the columns.
    context: What they read besides, shape (N, C).
    """

    def __init__(self, members: Sequence[Density], n: int, context: Tensor | None = None) -> None:
        every = range(len(members))
        together = n > 0 and not torch.is_grad_enabled()  # what is stacked records none
        self.places = alike(members) if together else [[k] for k in every]
        self.steps = [_steps([members[k] for k in some], n, context) for some in self.places]
        order = torch.tensor([k for some in self.places for k in some])
        self.back = None if torch.equal(order, torch.arange(len(order))) else order.argsort()

    def __len__(self) -> int:
        return sum(map(len, self.places))

    def each(self, method: str, x: Tensor) -> Tensor:
        """Returns what a method of every member's steps says of values x, shape (N,), as (K, N)."""
        parts = [
            getattr(steps, method)(x.repeat(len(some))).view(len(some), len(x))
            for some, steps in zip(self.places, self.steps, strict=True)
        ]
        found = torch.cat(parts)
        return found if self.back is None else found[self.back.to(found.device)]

    def quantiles(self, member: Tensor, u: Tensor) -> Tensor:
        """Returns the quantile of one member for each row.

        member: Which member that is, shape (N,).
        """
        found = torch.empty_like(u)
        for some, steps in zip(self.places, self.steps, strict=True):
            for k, place in enumerate(some):
                rows = (member == place).nonzero().flatten()
                if len(rows):
                    found[rows] = steps.quantile_of(rows + k * len(u), u.repeat(len(some)))
        return found

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column."""
        for some, steps in zip(self.places, self.steps, strict=True):
            steps.feed(x.repeat(len(some)))


def _steps(members: Sequence[Density], n: int, context: Tensor | None) -> Steps:
    """Returns the steps of the rows of the first member, then those of the second, and so on."""
    networks = [member for member in members if isinstance(member, NITS)]
    if len(networks) < 2:
        return members[0].steps(n, context)
    which = torch.arange(len(networks)).repeat_interleave(n)
    about = None if context is None else context.repeat(len(networks), 1)
    return Stacked(networks).steps(which, about)
