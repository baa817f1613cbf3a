"""The companion of a table's model: a network that answers with any columns given and any asked.

It is trained beside the members, on the rows of the first fold, and has no part in their mixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nits.model.joint import NITS
from nits.model.random_roles import RandomRoles
from nits.model.roles import Roles, optional
from nits.tables.defaults import Plan, Style
from nits.tables.networks import Sketch, no_hats
from nits.weights import Guided, MaskedMLP, WeightModel, activations

if TYPE_CHECKING:
    from nits.tables.tasks import Course, Task

SORT = "companion"
"""What tasks call it, in place of a sort of members."""

LONGER = 2
"""Times the steps of a member, unless the user names them: it has more to learn (docs/roles.md)."""

ANY = "any"
"""The questions that `NITSDensity(answers=)` can be told to be ready for."""


def checked(answers: str | None) -> bool:
    """Returns whether there is to be a companion; refuses what is no choice."""
    if answers not in (None, ANY):
        raise ValueError(f"answers must be {ANY!r} or None, but is {answers!r}; choose one.")
    return answers is not None


def tasks(course: Course, first: Task) -> list[Task]:
    """Returns the task of the companion, or none if it is not wanted.

    first: That of the first network, whose rows and recipe the companion shares.
    """
    if not checked(course.estimator.answers):
        return []
    seed = course.seed + course.plan.wanted
    density = network(course.estimator.sketch_, course.plan.styles[0], course.plan, seed)
    found = first._replace(density=density, sort=SORT, about={}, seed=seed)
    if course.estimator.max_steps is None and first.max_steps is not None:
        found = found._replace(max_steps=LONGER * first.max_steps)
    return [found]


def network(sketch: Sketch, style: Style, plan: Plan, seed: int) -> RandomRoles:
    """Returns a network with initial weights."""
    heads = optional(sketch.heads(style.pnn, plan.knots))
    ordered = sketch.ordered(heads)
    given = [*sketch.given, *ordered]
    net: WeightModel = MaskedMLP(
        [head.inputs for head in ordered],
        [head.weights for head in ordered],
        sum(head.inputs for head in given),
        hidden=max(plan.hidden, len(heads)),
        blocks=plan.blocks,
        dropout=style.dropout,
        activation=activations.named(style.activation),
        codes=plan.codes,
        generator=seed,
    )
    if style.guess:
        net = Guided(net, ordered, straight=no_hats(given))
    return RandomRoles(Roles(NITS(heads, net, sketch.order)))
