"""Flows from zuko: neural spline (NSF), masked affine (MAF) and neural autoregressive (NAF)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import zuko
from torch import Tensor, nn

from models.fitted import Clock, Fitted, Settings, taken
from models.training import train
from nits.datasets import Split


@dataclass(frozen=True)
class Shape:
    """What every flow has: the number of transformations, and the layers of the network of each."""

    transforms: int
    hidden: list[int]


@dataclass(frozen=True)
class Splines(Shape):
    """The number of bins of each spline."""

    bins: int


@dataclass(frozen=True)
class Monotone(Shape):
    """The width of what the monotone network is told, and its layers."""

    signal: int
    monotone_hidden: list[int]


def nsf(columns: int, settings: Settings) -> nn.Module:
    """Returns an autoregressive neural spline flow."""
    s = taken(Splines, settings)
    flow: nn.Module = zuko.flows.NSF(
        columns, transforms=s.transforms, hidden_features=s.hidden, bins=s.bins
    )
    return flow


def maf(columns: int, settings: Settings) -> nn.Module:
    """Returns a masked autoregressive flow."""
    s = taken(Shape, settings)
    flow: nn.Module = zuko.flows.MAF(columns, transforms=s.transforms, hidden_features=s.hidden)
    return flow


def naf(columns: int, settings: Settings) -> nn.Module:
    """Returns a neural autoregressive flow."""
    s = taken(Monotone, settings)
    flow: nn.Module = zuko.flows.NAF(
        columns,
        transforms=s.transforms,
        hidden_features=s.hidden,
        signal=s.signal,
        network={"hidden_features": s.monotone_hidden},
    )
    return flow


BUILD: dict[str, Callable[[int, Settings], nn.Module]] = {
    "zuko-nsf": nsf,
    "zuko-maf": maf,
    "zuko-naf": naf,
}


def log_prob(flow: nn.Module, x: Tensor) -> Tensor:
    """Returns the nats of rows."""
    value: Tensor = flow().log_prob(x)
    return value


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Trains the flow that the settings name."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    flow = BUILD[settings["model"]](split.train.shape[1], settings)
    return train(flow, log_prob, split, settings, clock, seed)
