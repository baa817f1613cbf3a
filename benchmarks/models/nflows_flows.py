"""Rational-quadratic neural spline flows from nflows, by the authors of the method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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

from models.fitted import Settings
from models.rival_training import train


def autoregressive(columns: int, _: int, settings: Settings) -> nn.Module:
    """Returns one autoregressive spline layer."""
    layer: nn.Module = MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        features=columns,
        hidden_features=settings["hidden"],
        num_bins=settings["bins"],
        tails="linear",
        tail_bound=settings["tail_bound"],
        num_blocks=settings["blocks"],
        dropout_probability=settings["dropout"],
    )
    return layer


def coupling(columns: int, position: int, settings: Settings) -> nn.Module:
    """Returns one coupling layer, which transforms the even or the odd columns given the others."""
    size = {"num_blocks": settings["blocks"], "dropout_probability": settings["dropout"]}

    def network(inputs: int, outputs: int) -> nn.Module:
        net: nn.Module = ResidualNet(inputs, outputs, settings["hidden"], **size)
        return net

    layer: nn.Module = PiecewiseRationalQuadraticCouplingTransform(
        mask=create_alternating_binary_mask(columns, even=position % 2 == 0),
        transform_net_create_fn=network,
        num_bins=settings["bins"],
        tails="linear",
        tail_bound=settings["tail_bound"],
        apply_unconditional_transform=True,
    )
    return layer


LAYERS: dict[str, Callable[[int, int, Settings], nn.Module]] = {
    "nflows-rq-autoregressive": autoregressive,
    "nflows-rq-coupling": coupling,
}


def build(columns: int, settings: Settings) -> nn.Module:
    """Returns the untrained flow: linear and spline layers in turn, and a linear one at the end."""
    layer, layers = LAYERS[settings["model"]], []
    for position in range(settings["transforms"]):
        layers += [*_linear(columns), layer(columns, position, settings)]
    transform = CompositeTransform([*layers, *_linear(columns)])
    flow: nn.Module = Flow(transform, StandardNormal([columns]))
    return flow


def _linear(columns: int) -> list[nn.Module]:
    return [RandomPermutation(columns), LULinear(columns, identity_init=True)]


def log_prob(flow: nn.Module, x: Tensor) -> Tensor:
    """Returns the nats of rows."""
    value: Tensor = flow.log_prob(x)  # type: ignore[operator]
    return value


def sample(flow: nn.Module, n: int) -> Tensor:
    """Draws n rows."""
    rows: Tensor = flow.sample(n)  # type: ignore[operator]
    return rows


fit = partial(train, build, log_prob)
"""Trains the flow that the settings name; see `models.Fit`."""
