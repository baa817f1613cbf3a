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
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from nits.weights import Clusters, Guided, Heard, Independent, MaskedMLP, WeightModel, activations
from nits.weights import description as weights_to_json
from nits.weights.allowance import Allowance
from nits.weights.clusters import UNITS

LINEAR = "straight lines"
INDEPENDENT = "independent columns"
CLUSTERS = "clusters"
SIMPLE = (LINEAR, INDEPENDENT, CLUSTERS)
"""Densities that only start from the rows."""

SIMPLE_PNN = (32,)
"""Units of the PNNs of the first two."""

COMPONENTS = ((16, 32), (64, 16))
"""Pairs of a number of columns and the clusters of tables of at most so many, most of which are
empty where fewer do better."""

FEWEST = 4
"""Clusters of tables with more columns, each of which has a covariance of its own."""

WIDEST = 300
"""Columns up to which clusters are tried."""

CLUSTERED = 20_000
"""Rows up to which clusters are tried: with more, networks have left them behind."""


class Sketch(NamedTuple):
    """What a network of a table is built from: the same for all members.

    columns: In the order of the table.
    given: Heads of the columns that are given, as they are read.
    order: Positions of the columns in modelling order.
    guesses: How many of those that are given, the last ones, are guesses of trees.
    """

    columns: Sequence[Column]
    given: Sequence[Head]
    order: Sequence[int] | None
    guesses: int = 0

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
    given = sketch.given if style.trees else sketch.given[: len(sketch.given) - sketch.guesses]
    straight = no_hats(given)
    every = list(range(sum(head.inputs for head in given)))
    heard = straight if style.guess and not style.hats else every
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
    elif len(heard) < sketch.context:
        net = Heard(net, sketch.context, heard)
    return NITS(heads, net, sketch.order)


def simple_sorts(sketch: Sketch, rows: int) -> list[str]:
    """Returns which simple densities there are for a table."""
    clustered = rows < CLUSTERED and not sketch.context and len(sketch.columns) <= WIDEST
    return [*SIMPLE[:2], *([CLUSTERS] if clustered else [])]


def simple_about(density: Density) -> dict[str, Any]:
    """Returns the PNNs and hats of a simple density, for a file."""
    weights = density.weights if isinstance(density, NITS) else None
    units = weights.components * weights.units if isinstance(weights, Clusters) else SIMPLE_PNN[0]
    return {"pnn": [units], "knots": 0, "whiten": False}


def simple(sketch: Sketch, kind: str) -> Density:
    """Returns a density that only starts from rows: lines, independent columns, or clusters."""
    if kind == CLUSTERS:
        columns = len(sketch.columns)
        most = next((count for limit, count in COMPONENTS if columns <= limit), FEWEST)
        return _clusters(sketch, most)
    heads = sketch.heads(SIMPLE_PNN, 0)
    ordered = sketch.ordered(heads)
    sizes = [head.inputs for head in ordered], [head.weights for head in ordered]
    constant = Independent(*sizes, sketch.context, generator=0)
    if kind == INDEPENDENT:
        return NITS(heads, constant, sketch.order)
    lines = Guided(constant, ordered, straight=no_hats(sketch.given))
    return NITS(heads, lines, sketch.order)


def simple_of(sketch: Sketch, kind: str, rows: Rows) -> Density:
    """Returns a simple density of rows, with no more clusters than they have."""
    density = simple(sketch, kind)
    start_from_data(density, rows)
    found = density.weights if isinstance(density, NITS) else None
    if isinstance(found, Clusters) and found.occupied < found.components:
        density = _clusters(sketch, found.occupied, found)
    return density.eval()


def _clusters(sketch: Sketch, components: int, found: Clusters | None = None) -> NITS:
    """Returns a model of clusters: none yet, or the first ones of those that were found."""
    heads = sketch.heads((UNITS * components,), 0)
    weights = Clusters(sketch.ordered(heads), components)
    if found is not None:
        weights.take_first(found)
    return NITS(heads, weights, sketch.order)


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
