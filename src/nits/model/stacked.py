"""Networks of one shape as one density, each row of which belongs to one of them.

What questions and draws need of a mixture's members: particles of all of them walk together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nits.chunks import slices
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.reading import features_of
from nits.model.steps import HeadSteps
from nits.pnn.random import uniform
from nits.weights.stacked_stepper import Places, StackedStepper, shape


class Stacked:
    """K networks with the same columns in the same order.

    members: The networks, which `alike` has found to be of one shape.
    """

    def __init__(self, members: Sequence[NITS]) -> None:
        self.members = list(members)
        self.knots = torch.stack([member.reading.knots for member in members])

    def __len__(self) -> int:
        return len(self.members)

    @property
    def order(self) -> Tensor:
        """The columns in the order in which they are modelled, shape (D,)."""
        return self.members[0].order

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of inputs and outputs."""
        return self.members[0].like

    def steps(self, member: Tensor, context: Tensor | None = None) -> StackedSteps:
        """Starts rows, column by column.

        member: Which network each row belongs to, shape (N,).
        context: What they read besides, shape (N, C).
        """
        return StackedSteps(self, member, None if context is None else context.t())

    def sample(
        self,
        member: Tensor,
        context: Tensor | None,
        generator: torch.Generator,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws a row of the network that is named for each, shape (N, D); see `filled`."""
        u = uniform(torch.Size((len(member), len(self.order))), self.like, generator)
        return self.filled(
            u, torch.full_like(u, torch.nan) if given is None else given, member, context
        )

    def filled(
        self, u: Tensor, given: Tensor, member: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Returns rows at probabilities u, shape (N, D), except for values that are given.

        given: NaN where values are to be found, shape (N, D).
        member, context: As in `steps`.
        """
        rows = torch.empty_like(u)
        for some in slices(len(u), max(1, self.members[0].stepped_at_once)):
            here = some.start + member[some].argsort(stable=True)  # network by network: less moving
            steps = self.steps(member[here], None if context is None else context[here])
            rows[here] = steps.rows(self.order, u[here], given[here])
        return rows


class StackedSteps(HeadSteps):
    """The steps of rows that belong to several networks; no gradients are recorded."""

    def __init__(self, stack: Stacked, member: Tensor, context: Tensor | None) -> None:
        first = stack.members[0]
        self.places, self.knots = Places(member, len(stack)), stack.knots
        models = [one.weights for one in stack.members]
        self.together = StackedStepper(models, self.places, context)
        super().__init__(first.ordered, first.ends, first.reading, self.together)

    def feed(self, x: Tensor) -> None:
        """Hands the features of the values to the networks, by each one's own knots."""
        start, stop = (self.reading.reach[self.position + k] for k in (0, 1))
        self._given = None
        found = features_of(self.head, self.places.spread(x), self.knots[:, start:stop])
        self.together.feed(found.transpose(0, 1))
        self.position += 1


def alike(members: Sequence[Density]) -> list[list[int]]:
    """Returns which members can be stacked: lists of their positions, in the order of the first."""
    found: dict[object, list[int]] = {}
    for k, member in enumerate(members):
        found.setdefault(_shape(member) or k, []).append(k)
    return list(found.values())


def _shape(member: Density) -> tuple[object, ...] | None:
    """Returns what a network has in common with those that it can be stacked with."""
    if not isinstance(member, NITS):
        return None
    weights = shape(member.weights)
    columns = tuple(member.heads), tuple(member.order.tolist()), str(member.like.dtype)
    return None if weights is None else (*columns, *weights)
