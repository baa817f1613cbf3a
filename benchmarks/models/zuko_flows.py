"""Flows from zuko: neural spline (NSF), masked affine (MAF) and neural autoregressive (NAF)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import zuko
from torch import Tensor, nn

from models.fitted import Settings
from models.rival_training import train

FLOWS = {"zuko-nsf": zuko.flows.NSF, "zuko-maf": zuko.flows.MAF, "zuko-naf": zuko.flows.NAF}


def build(columns: int, settings: Settings) -> nn.Module:
    """Returns the untrained flow that the settings name."""
    name = settings["model"]
    more: dict[str, Any] = {"bins": settings["bins"]} if name == "zuko-nsf" else {}
    if name == "zuko-naf":
        monotone = {"hidden_features": settings["monotone_hidden"]}
        more = {"signal": settings["signal"], "network": monotone}
    shape = {"transforms": settings["transforms"], "hidden_features": settings["hidden"]}
    flow: nn.Module = FLOWS[name](columns, **shape, **more)
    return flow


def log_prob(flow: nn.Module, x: Tensor) -> Tensor:
    """Returns the nats of rows."""
    value: Tensor = flow().log_prob(x)
    return value


def sample(flow: nn.Module, n: int) -> Tensor:
    """Draws n rows."""
    rows: Tensor = flow().sample(torch.Size((n,)))
    return rows


fit = partial(train, build, log_prob)
"""Trains the flow that the settings name; see `models.Fit`."""
