"""A weight model that needs no training: a mixture of Gaussians and of categories.

Rows belong to one of K clusters. In a cluster the points of all PNNs together are Gaussian, and
levels of categories, atoms and holes have fixed probabilities. Given the columns before, a cluster
has the weight w_k(x_<i) of equation (26), and the column's point is Gaussian around a line of the
points before, so that the PNN's units, a few for each cluster, and logits are closed form:

    z_i | k, x_<i ~ N(a_ki + B_ki · z_<i, s_ki²),    P(l | x_<i) = Σ_k w_k(x_<i) q_ki(l)      (38)

It is ahead of networks where rows are few and lie in clumps, or smooth in many columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nits.heads.head import Head
from nits.pnn.initial import from_log_weights, standard_normal
from nits.pnn.plain import log_weights
from nits.weights import expectation
from nits.weights.weight_model import Read, WeightModel

UNITS = 4
"""Units of a PNN by which one Gaussian is approximated, to 0.0003 nats; two come to 0.002, which
many columns add up."""

STEEPEST = 19.0
"""Greatest log-slope of a unit."""


class Place(NamedTuple):
    """Where one column stands among the numbers of a model of clusters.

    point: Its position among the columns with a PNN; None for categories.
    levels: Where its levels, or its atoms and then all other values, stand among all of these.
    value: The feature that is its point, if any.
    flags: The features that tell its level; if there is a point, the last level has none.
    """

    point: int | None
    levels: slice
    value: int
    flags: slice


class Clusters(WeightModel):
    """Equation (38) for columns with PNNs of one layer.

    heads: The columns in modelling order, without hats.
    components: K. The PNNs have as many units for each of them.

    >>> import nits, torch
    >>> heads = [nits.heads.Continuous(hidden=(8,)), nits.heads.Categorical(2)]
    >>> model = nits.NITS(heads, nits.weights.Clusters(heads, components=4))
    >>> model.start_from(torch.tensor([[0.1, 0.0], [0.3, 0.0], [5.2, 1.0], [4.9, 1.0]] * 20))
    >>> model.sample(4).shape
    torch.Size([4, 2])
    """

    constant: Tensor
    lines: Tensor
    log_scale: Tensor
    log_level: Tensor

    def __init__(self, heads: Sequence[Head], components: int) -> None:
        inputs, outputs = [head.inputs for head in heads], [head.weights for head in heads]
        super().__init__(inputs, outputs)
        self.components, self.units = components, _units_of_one(heads, components)
        self.places = _places(heads)
        points = sum(place.point is not None for place in self.places)
        levels = self.places[-1].levels.stop
        shapes = {
            "constant": (components, points),
            "lines": (components, points, points),
            "log_scale": (components, points),
            "log_level": (components, levels),
        }
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape))
        # A parameter, since a model's dtype and device are those of one.
        self.log_share = nn.Parameter(torch.zeros(components), requires_grad=False)

    @property
    def occupied(self) -> int:
        """How many of the clusters rows were found for: the first ones."""
        return int((self.log_share > expectation.EMPTY / 2).sum())

    def take_first(self, other: Clusters) -> None:
        """Takes over the first clusters of a model of more."""
        for name, own in self.state_dict().items():
            own.copy_(other.state_dict()[name][: self.components])

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), to weights, shape (Σ outputs, N)."""
        steps, parts, start = self.stepper(features.shape[1]), [], 0
        for inputs in self.inputs:
            parts.append(steps.theta())
            steps.feed(features[start : start + inputs])
            start += inputs
        return torch.cat(parts)

    def stepper(self, n: int, context: Tensor | None = None) -> ClustersStepper:
        """Starts the evaluation of n rows column by column."""
        return ClustersStepper(self, n)

    def start_at(self, theta: Tensor) -> None:
        """Refuses: clusters follow rows, not weights."""
        raise ValueError("a model of clusters must start from rows; call start_from.")

    def start_from(
        self, heads: Sequence[Head], columns: Tensor, read: Read, context: Tensor | None = None
    ) -> None:
        """Finds the clusters of the rows; see `WeightModel.start_from`."""
        features = read(columns).double()
        points, levels, start = [], [], 0
        for head, place, x in zip(heads, self.places, columns, strict=True):
            own = features[start : start + head.inputs]
            if place.point is not None:
                placed = head.placed(x).double()
                points.append(torch.where(placed.isnan(), own[place.value], placed))
            levels.append(_flags(place, own))
            start += head.inputs
        none = features[:0]
        rows = expectation.Table(
            torch.stack(points) if points else none,
            torch.cat(levels),
            [place.levels for place in self.places if place.levels.stop > place.levels.start],
        )
        found = expectation.clusters(rows, self.components)
        for name, value in found._asdict().items():
            getattr(self, name).copy_(value)


class ClustersStepper:
    """The weights of the columns of n rows, one after another."""

    def __init__(self, model: Clusters, n: int) -> None:
        self.model, self.position = model, 0
        self.log_weights = model.log_share.unsqueeze(1).expand(-1, n)  # (K, N)
        self.points = model.constant.new_empty(0, n)
        self.unit = standard_normal((model.units,)).to(model.constant)

    @property
    def place(self) -> Place:
        """Where the next column stands."""
        return self.model.places[self.position]

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        model, place = self.model, self.place
        weights = self.log_weights.log_softmax(0)
        own = model.log_level[:, place.levels].unsqueeze(2)  # (K, levels, 1)
        shares = (weights.unsqueeze(1) + own).logsumexp(0)
        if place.point is None:
            return shares
        slopes, centres, logits = self.unit.tensor_split(3)
        scale = model.log_scale[:, place.point, None]  # (K, 1)
        steep = (log_weights(slopes) - scale).clamp(-STEEPEST, STEEPEST).reshape(-1, 1)
        moved = self._means().unsqueeze(1) + (scale.exp() * centres).unsqueeze(2)  # (K, u, N)
        if own.shape[1]:
            weights = weights + own[:, -1]
        chosen = weights.unsqueeze(1) + logits.log_softmax(0).unsqueeze(1)
        n = moved.shape[2]
        pnn = [from_log_weights(steep).expand(-1, n), moved.flatten(0, 1), chosen.flatten(0, 1)]
        return torch.cat([shares, *pnn])

    def _means(self) -> Tensor:
        """Returns the means of the next point in each cluster, shape (K, N)."""
        point = len(self.points)
        lines = self.model.lines[:, point, :point]
        return self.model.constant[:, point, None] + lines @ self.points

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        model, place = self.model, self.place
        flags = _flags(place, features)
        told = model.log_level[:, place.levels] @ flags  # (K, N)
        if place.point is not None:
            x, scale = features[place.value], model.log_scale[:, place.point, None]
            error = (x - self._means()) * torch.exp(-scale)
            log_density = -(error.square() + math.log(2 * math.pi)) / 2 - scale
            told = told + log_density * (flags[-1] if len(flags) else 1.0)
            self.points = torch.cat([self.points, x.unsqueeze(0)])
        self.log_weights = (self.log_weights + told).log_softmax(0)
        self.position += 1


def _flags(place: Place, features: Tensor) -> Tensor:
    """Returns which level a column has, 1 or 0, shape (levels, N), from its features."""
    flags = (features[place.flags] > 0).to(features)
    if place.point is None or not len(flags):
        return flags
    return torch.cat([flags, 1 - flags.sum(0, keepdim=True)])


def _places(heads: Sequence[Head]) -> list[Place]:
    found: list[Place] = []
    points = levels = 0
    for head in heads:
        # Before the slopes and centres of its PNN a head has a logit per level.
        pnn = _units(head) > 0
        count = head.followers.start - _units(head) if pnn else head.weights
        flags = slice(head.inputs - max(count - pnn, 0), head.inputs)
        own = slice(levels, levels + count)
        found.append(Place(points if pnn else None, own, 0, flags))
        points, levels = points + pnn, levels + count
    return found


def _units(head: Head) -> int:
    """Returns the number of units of a head's PNN, of which half follow a guess; 0 without one."""
    return 2 * len(range(head.weights)[head.followers])


def _units_of_one(heads: Sequence[Head], components: int) -> int:
    """Returns how many units each cluster has, and refuses heads that equation (38) is not for."""
    first = next(filter(None, map(_units, heads)), UNITS * components)
    for head in heads:
        pnn = _units(head)
        if head.knots or pnn not in (0, first) or pnn % components or head.weights < 3 * pnn:
            raise ValueError(
                f"heads of {components} clusters must have no hats, and one layer of as many "
                f"units for each cluster if they have a PNN, but {type(head).__name__} has "
                f"{head.knots} hats and {pnn} units."
            )
    return first // components
