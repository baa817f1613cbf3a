"""The densities that members are: networks of several styles, and simple ones without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nits import checks
from nits.heads import Head
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.whitened import Whitened
from nits.tables.columns import Column
from nits.tables.defaults import Plan, Style
from nits.weights import Guided, Independent, MaskedMLP, WeightModel, activations
from nits.weights import description as weights_to_json
from nits.weights.allowance import Allowance

LINEAR = "straight lines"
INDEPENDENT = "independent columns"


class Sketch(NamedTuple):
    """What a network of a table is built from: the same for all members.

    columns: In the order of the table.
    given: Heads of the columns that are given, as they are read.
    order: Positions of the columns in modelling order.
    """

    columns: Sequence[Column]
    given: Sequence[Head]
    order: Sequence[int] | None

    @property
    def context(self) -> int:
        """The number of features that are read of the columns that are given."""
        return sum(head.inputs for head in self.given)

    def heads(self, pnn: tuple[int, ...], knots: int) -> list[Head]:
        """Returns the heads of the columns, as in the table."""
        return [column.head(pnn, knots) for column in self.columns]

    def ordered(self, heads: Sequence[Head]) -> list[Head]:
        """Returns them in modelling order."""
        return [heads[i] for i in self.order] if self.order is not None else list(heads)


def network(sketch: Sketch, style: Style, plan: Plan, seed: int) -> Density:
    """Returns a network with initial weights."""
    heads = sketch.heads(style.pnn, plan.knots if style.hats else 0)
    ordered = sketch.ordered(heads)
    straight = no_hats(sketch.given)
    heard = straight if style.guess and not style.hats else list(range(sketch.context))
    net: WeightModel = MaskedMLP(
        [head.inputs for head in ordered],
        [head.weights for head in ordered],
        len(heard),
        hidden=plan.hidden,
        blocks=plan.blocks,
        dropout=style.dropout,
        activation=activations.named(style.activation),
        codes=plan.codes,
        generator=seed,
    )
    if style.whiten:
        return Whitened(NITS(heads, net, sketch.order))
    if style.guess:
        net = Guided(net, ordered, sketch.context, straight, heard)
    return NITS(heads, net, sketch.order)


def simple(sketch: Sketch, kind: str, pnn: tuple[int, ...]) -> Density:
    """Returns a density that training starts from, and no more: lines, or independent columns."""
    heads = sketch.heads(pnn, 0)
    ordered = sketch.ordered(heads)
    sizes = [head.inputs for head in ordered], [head.weights for head in ordered]
    constant = Independent(*sizes, sketch.context, generator=0)
    if kind == INDEPENDENT:
        return NITS(heads, constant, sketch.order)
    lines = Guided(constant, ordered, straight=no_hats(sketch.given))
    return NITS(heads, lines, sketch.order)


def no_hats(given: Sequence[Head]) -> list[int]:
    """Returns which features of the columns that are given are no hats."""
    flags = []
    for head in given:
        flags += [not 1 <= i <= head.knots for i in range(head.inputs)]
    return [i for i, flag in enumerate(flags) if flag]


def rebuilt(sketch: Sketch, about: dict[str, Any], allowance: Allowance) -> Density:
    """Returns a member as a file describes it, with other weights, if it is allowed so much."""
    if "order" in about:
        sketch = sketch._replace(order=checks.order(about["order"], len(sketch.columns)))
    heads = sketch.heads(tuple(about["pnn"]), about["knots"])
    weights = weights_to_json.weights_of(about["weights"], sketch.ordered(heads), allowance)
    if about["whiten"]:
        allowance.take(len(heads) ** 2)
    density = NITS(heads, weights, sketch.order)
    return Whitened(density) if about["whiten"] else density


def described(member: Density, about: dict[str, Any]) -> dict[str, Any]:
    """Returns what `rebuilt` builds a member from, besides the columns."""
    density: Any = member.density if isinstance(member, Whitened) else member
    return {**about, "weights": weights_to_json.described(density.weights)}
