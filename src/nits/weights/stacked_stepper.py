"""Networks of one shape fed one column at a time, each for rows of its own, all at once.

The products of a small network take less time than it takes to call for them. So K networks, whose
matrices lie one upon the other, take hardly longer than one: their rows lie in K layers of equal
size, the last places of which may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nits.weights.block_linear import BlockLinear
from nits.weights.guided import Guided
from nits.weights.heard import Heard
from nits.weights.masked_mlp import MaskedMLP
from nits.weights.mlp_stepper import Starts
from nits.weights.weight_model import WeightModel


def network(weights: WeightModel) -> MaskedMLP | None:
    """Returns the network of a weight model if such ones can be stacked, with a guess or without.

    Only those whose last layer is one matrix can.
    """
    inner = weights.model if isinstance(weights, Guided | Heard) else weights
    if isinstance(inner, MaskedMLP) and isinstance(inner.last, BlockLinear):
        return inner
    return None


def shape(weights: WeightModel) -> tuple[object, ...] | None:
    """Returns what networks must have in common to be stacked; None if they cannot be."""
    net = network(weights)
    if net is None:
        return None
    read: tuple[tuple[int, ...], ...] = ()
    if isinstance(weights, Guided | Heard):
        read = (tuple(weights.heard),)
    if isinstance(weights, Guided):
        read += (tuple(weights.straight),)
    sizes = (net.inputs, net.outputs, net.context, len(net.ranks), len(net.inner))
    return (*sizes, net.activation, isinstance(weights, Guided), read)


class Places:
    """Where rows lie that belong to K networks: in K layers of m places each.

    network: Which of them each row belongs to, shape (N,).
    """

    def __init__(self, network: Tensor, count: int) -> None:
        sizes = torch.bincount(network, minlength=count)
        self.count, self.most = count, int(sizes.amax())
        order = network.argsort(stable=True)
        first = (sizes.cumsum(0) - sizes)[network[order]]
        place = torch.empty_like(network)
        place[order] = torch.arange(len(network)) - first + network[order] * self.most
        self.place = None if torch.equal(place, torch.arange(count * self.most)) else place
        in_turn = bool((network[1:] >= network[:-1]).all())
        self.sizes = sizes.tolist() if in_turn else None

    def spread(self, rows: Tensor) -> Tensor:
        """Puts what rows have, shape (*, N), into layers, shape (*, K, m); 0 where no row is."""
        if self.place is not None:
            whole = rows.new_zeros(*rows.shape[:-1], self.count * self.most)
            whole[..., self.place] = rows
            rows = whole
        return rows.reshape(*rows.shape[:-1], self.count, self.most)

    def gathered(self, layers: Tensor) -> Tensor:
        """Returns what the layers, shape (K, P, m), have for each row, shape (P, N)."""
        flat = layers.transpose(0, 1).flatten(1)
        return flat if self.place is None else flat[:, self.place]

    def products(self, weights: Tensor, layers: Tensor) -> Tensor:
        """Returns each network's matrix, shape (K, P, H), times its layer (K, H, m): (P, N)."""
        if self.sizes is None:
            return self.gathered(torch.bmm(weights, layers))
        found = layers.new_empty(weights.shape[1], sum(self.sizes))
        parts = found.split(self.sizes, 1)
        for k, (part, size) in enumerate(zip(parts, self.sizes, strict=True)):
            torch.mm(weights[k], layers[k, :, :size], out=part)
        return found


class StackedStepper:
    """The weights of K networks' columns, one column after another; see `MLPStepper`.

    models: Weight models of one `shape`.
    places: Where the rows of each lie.
    context: What each row reads besides, shape (C, N).
    """

    def __init__(
        self, models: Sequence[WeightModel], places: Places, context: Tensor | None
    ) -> None:
        self.places, self.position = places, 0
        self.first_model = models[0]
        nets = [net for net in map(network, models) if net is not None]
        self.net = net = nets[0]
        self.starts = Starts.of(net)
        every = zip(*([net.first, *net.inner, net.last] for net in nets), strict=True)
        *inner, last = every
        self.layers = [_Layer(each) for each in inner]
        self.last = torch.stack([_with_bias(layer) for layer in last])
        like = net.last.bias
        k, m, units = places.count, places.most, len(net.ranks)
        self.features = like.new_zeros(k, sum(net.inputs), m)
        self.active = [like.new_zeros(k, units, m) for _ in self.layers[1:]]
        self.read = like.new_ones(k, 1 + units, m)  # the first is that of the bias
        about = None if context is None else places.spread(context).transpose(0, 1)  # (K, C, m)
        self.lines = _Lines(models, about) if isinstance(models[0], Guided) else None
        self.context = None
        if about is not None:
            heard = about[:, models[0].heard] if isinstance(models[0], Guided | Heard) else about
            self.context = torch.stack([net.context_weight.detach() for net in nets]) @ heard
        self._compute_rank()

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        rows, known = self.starts.written(self.position), self.starts.rank(self.position).stop
        found = self.places.products(self.last[:, rows, : 1 + known], self.read[:, : 1 + known])
        if self.lines is not None and (guess := self.lines.guess(self.position)) is not None:
            moved = self.lines.following[self.position]
            found.index_add_(0, moved, self.places.gathered(guess).expand(len(moved), -1))
        return found

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (K, inputs, m)."""
        self.features[:, self.starts.read(self.position)] = features
        if self.lines is not None:
            self.lines.feed(self.position, features)
        self.position += 1
        if self.position < len(self.net.inputs):
            self._compute_rank()

    def _compute_rank(self) -> None:
        """Computes the units whose rank is the position."""
        rows = self.starts.rank(self.position)
        if rows.start == rows.stop:
            return
        act, (first, *inner) = self.net.activation, self.layers
        h = first.product(rows, self.starts.features[self.position], self.features)
        if self.context is not None:
            h = h + self.context[:, rows]
        for k in range(0, len(inner), 2):
            self.active[k][:, rows] = act(h)
            self.active[k + 1][:, rows] = act(inner[k].product(rows, rows.stop, self.active[k]))
            h = h + inner[k + 1].product(rows, rows.stop, self.active[k + 1])
        self.read[:, 1 + rows.start : 1 + rows.stop] = act(h)


def _with_bias(layer: torch.nn.Module) -> Tensor:
    """Returns a layer's matrix with its bias as the first column, which costs no sum of its own."""
    parts = (
        layer.get_parameter("bias").detach().unsqueeze(1),
        layer.get_parameter("weight").detach(),
    )
    return torch.cat(parts, 1)


class _Layer:
    """The same layer of K networks, shape (K, out, in)."""

    def __init__(self, layers: Sequence[torch.nn.Module]) -> None:
        self.weight = torch.stack([layer.get_parameter("weight").detach() for layer in layers])
        biases = torch.stack([layer.get_parameter("bias").detach() for layer in layers])
        self.bias = biases.unsqueeze(-1)

    def product(self, rows: slice, known: int, x: Tensor) -> Tensor:
        """Returns rows of the output, shape (K, rows, m), which read the first `known` inputs."""
        return torch.baddbmm(self.bias[:, rows], self.weight[:, rows, :known], x[:, :known])


class _Lines:
    """The straight-line guesses of K networks, equation (29)."""

    def __init__(self, models: Sequence[WeightModel], context: Tensor | None) -> None:
        guided = [model for model in models if isinstance(model, Guided)]
        self.coefficients = torch.stack([model.coefficients for model in guided])
        first = guided[0]
        self.known = [] if context is None else [context[:, first.straight]]
        flags = torch.zeros(sum(first.inputs), dtype=torch.bool)
        flags[first.regressors] = True
        self.read = flags.split(first.inputs)
        self.following = [
            (owner >= 0).nonzero().flatten() for owner in first.owner.split(first.outputs)
        ]

    def feed(self, position: int, features: Tensor) -> None:
        """Takes the features of a column, shape (K, inputs, m)."""
        self.known.append(features[:, self.read[position]])

    def guess(self, position: int) -> Tensor | None:
        """Returns what is added to the centres of a column, shape (K, 1, m); None for nothing."""
        if not self.known or not len(self.following[position]):
            return None
        known = torch.cat(self.known, 1)
        return self.coefficients[:, position : position + 1, : known.shape[1]] @ known
