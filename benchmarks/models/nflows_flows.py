"""Rational-quadratic neural spline flows from nflows, by the authors of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms import (
    CompositeTransform,
    LULinear,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
    PiecewiseRationalQuadraticCouplingTransform,
    RandomPermutation,
)
from nflows.utils import create_alternating_binary_mask
from torch import Tensor, nn

from models.fitted import Clock, Fitted, Settings, taken
from models.training import train
from nits.datasets import Split


@dataclass(frozen=True)
class Shape:
    """Spline layers, each after a permutation and an LU-decomposed linear layer."""

    transforms: int
    hidden: int
    blocks: int
    dropout: float
    bins: int
    tail_bound: float


def autoregressive(columns: int, _: int, s: Shape) -> nn.Module:
    """Returns one autoregressive spline layer."""
    layer: nn.Module = MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        features=columns,
        hidden_features=s.hidden,
        num_bins=s.bins,
        tails="linear",
        tail_bound=s.tail_bound,
        num_blocks=s.blocks,
        dropout_probability=s.dropout,
    )
    return layer


def coupling(columns: int, position: int, s: Shape) -> nn.Module:
    """Returns one coupling layer, which transforms the even or the odd columns given the others."""

    def network(inputs: int, outputs: int) -> nn.Module:
        net: nn.Module = ResidualNet(
            inputs, outputs, s.hidden, num_blocks=s.blocks, dropout_probability=s.dropout
        )
        return net

    layer: nn.Module = PiecewiseRationalQuadraticCouplingTransform(
        mask=create_alternating_binary_mask(columns, even=position % 2 == 0),
        transform_net_create_fn=network,
        num_bins=s.bins,
        tails="linear",
        tail_bound=s.tail_bound,
        apply_unconditional_transform=True,
    )
    return layer


LAYER: dict[str, Callable[[int, int, Shape], nn.Module]] = {
    "nflows-rq-autoregressive": autoregressive,
    "nflows-rq-coupling": coupling,
}


def build(columns: int, settings: Settings) -> nn.Module:
    """Returns the flow: linear and spline layers in turn, and a linear one at the end."""
    s = taken(Shape, settings)
    layers = []
    for position in range(s.transforms):
        layers += [*_linear(columns), LAYER[settings["model"]](columns, position, s)]
    flow: nn.Module = Flow(
        CompositeTransform([*layers, *_linear(columns)]), StandardNormal([columns])
    )
    return flow


def _linear(columns: int) -> list[nn.Module]:
    return [RandomPermutation(columns), LULinear(columns, identity_init=True)]


def log_prob(flow: nn.Module, x: Tensor) -> Tensor:
    """Returns the nats of rows."""
    value: Tensor = flow.log_prob(x)  # type: ignore[operator]
    return value


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Trains the flow that the settings name."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    flow = build(split.train.shape[1], settings)
    return train(flow, log_prob, split, settings, clock, seed)
