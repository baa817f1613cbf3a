"""A network of roles that starts as a trained joint network, with room for what is given later.

Units of the joint network keep their weights. Those that read a column now read it in either role:
as one that came before, or as one that is given. So the first answers are the joint network's
wherever given columns come before the asked ones, and what is left to learn is how columns
that are given change those that come before them in the order. New units start unread.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

import nits
from nits.model.joint import NITS
from nits.weights import MaskedMLP
from nits.weights.block_linear import BlockLinear


def from_joint(joint: NITS, hidden: int, seed: int) -> nits.Roles:
    """Returns roles with so many hidden units that start from a joint network's weights."""
    old = _mlp(joint)
    sizes = {**old.sizes(), "hidden": hidden}
    sizes = {name: sizes[name] for name in ("hidden", "blocks", "dropout")}
    roles = nits.Roles.mlp(joint.heads, **sizes, order=joint.order.tolist(), generator=seed)
    new = _mlp(roles.density)
    units, features = _places(old.ranks, new.ranks), _read_before(old, new)
    with torch.no_grad():
        roles.density.reading.knots.copy_(joint.reading.knots)
        _copy(old.first, new.first, units, features)
        new.context_weight[units] = 0.0
        new.context_weight[units.unsqueeze(1), features] = old.first.weight
        for before, after in zip(_blocks(old), _blocks(new), strict=True):
            _copy(before, after, units, units)
        _copy(_last(old), _last(new), torch.arange(len(_last(new).bias)), units)
    return roles


def _mlp(model: NITS) -> MaskedMLP:
    """Returns the weight model, which must be a plain masked MLP."""
    if not isinstance(model.weights, MaskedMLP):
        raise TypeError(f"the joint network must be a MaskedMLP, but is {type(model.weights)}.")
    return model.weights


def _blocks(net: MaskedMLP) -> Iterator[BlockLinear]:
    for layer in net.inner:
        if isinstance(layer, BlockLinear):
            yield layer


def _last(net: MaskedMLP) -> BlockLinear:
    if not isinstance(net.last, BlockLinear):
        raise TypeError("the joint network must have a full last layer, but has codes.")
    return net.last


def _places(old: Tensor, new: Tensor) -> Tensor:
    """Returns where units of the old ranks stand among the new ones, shape (old units,)."""
    places = []
    for rank in old.unique().tolist():
        here = torch.nonzero(new == rank)[:, 0]
        needed = int((old == rank).sum())
        if len(here) < needed:
            raise ValueError(
                f"hidden must have at least {needed} units of rank {rank}, but has {len(here)}; "
                "widen it."
            )
        places.append(here[:needed])
    return torch.cat(places)


def _read_before(old: MaskedMLP, new: MaskedMLP) -> Tensor:
    """Returns where the old features stand among the new ones, which have flags besides."""
    starts = torch.tensor([0, *new.inputs]).cumsum(0)[:-1]
    return torch.cat([s + torch.arange(k) for s, k in zip(starts, old.inputs, strict=True)])


def _copy(old: BlockLinear, new: BlockLinear, rows: Tensor, columns: Tensor) -> None:
    """Sets the old weights at rows and columns; old rows read nothing else."""
    new.weight[rows] = 0.0
    new.weight[rows.unsqueeze(1), columns] = old.weight
    new.bias[rows] = old.bias
