"""The models whose speed is compared, at matched numbers of weights, and what each has to do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import NamedTuple

import models
import plain
import torch
from timing import Program
from torch import Tensor, nn

from nits import NITS, kernels
from nits.weights.block_linear import BlockLinear

SEED = 0
OURS, PLAIN = "nits-mlp", "plain"

NOISE = 0.005
"""Size of the weights of our last layer, on top of the quantiles where it starts."""

SCORED_AT_ONCE = 1024
"""Rows that the plain way scores at once: autograd keeps all units until the slope is known."""

RIVAL_SETTINGS = {"transforms": 5, "bins": 8, "tail_bound": 3.0, "dropout": 0.0}
RIVALS = ("zuko-nsf", "zuko-maf", "nflows-rq-autoregressive", "nflows-rq-coupling")
WIDTHS = {
    63: dict(zip(RIVALS, (994, 1487, 622, 699), strict=True)),
    6: dict(zip(RIVALS, (323, 380, 177, 185), strict=True)),
}
"""Widths at which rivals have as many weights as ours, by the number of columns."""


class Size(NamedTuple):
    """D columns; the width of the hidden layers; residual blocks, or for zuko hidden layers."""

    columns: int
    hidden: int
    blocks: int


OUR_SIZES = {63: Size(63, 512, 4), 6: Size(6, 256, 2)}


@dataclass(frozen=True)
class Contender:
    """A model that scores rows, shape (N, D) → (N,), and draws n rows, shape (n, D), if it can."""

    module: nn.Module
    log_prob: Callable[[Tensor], Tensor]
    sample: Callable[[int], Tensor] | None = None

    @property
    def parameters(self) -> int:
        """The number of trainable weights, masked ones included."""
        return sum(p.numel() for p in self.module.parameters() if p.requires_grad)


def started_at_quantiles(size: Size, noise: float = NOISE) -> NITS:
    """Returns a NITS-MLP that follows standard normal columns, with weights of size `noise` on top.

    It trains, scores and samples with our kernels in C++.
    """
    torch.manual_seed(SEED)
    model = NITS.mlp(size.columns, hidden=size.hidden, blocks=size.blocks)
    x = torch.randn(4096, size.columns)
    theta = [head.initial(x[:, i]) for i, head in enumerate(model.ordered)]
    model.weights.start_at(torch.cat(theta))
    last = layers(model)[-1]
    with torch.no_grad():
        last.weight.normal_(std=noise).mul_(last.mask)
    return model


def layers(model: NITS) -> list[BlockLinear]:
    """Returns the block-triangular layers, the last of which puts out the weights of the PNNs."""
    return [layer for layer in model.modules() if isinstance(layer, BlockLinear)]


def made_dense(model: NITS) -> NITS:
    """Returns a copy whose layers multiply whole masked matrices."""
    dense = copy.deepcopy(model)
    for layer in layers(dense):
        layer.forward = layer.dense  # type: ignore[method-assign]
    return dense


def nits_mlp(size: Size) -> Contender:
    """Returns NITS-MLP."""
    model = started_at_quantiles(size)
    return Contender(model, model.log_prob, model.sample)


def plain_way(size: Size) -> Contender:
    """Returns the same model evaluated as `plain.py` does, with the same weights."""
    model = made_dense(started_at_quantiles(size))

    def log_prob(x: Tensor) -> Tensor:
        at_once = len(x) if torch.is_grad_enabled() else SCORED_AT_ONCE
        return torch.cat([plain.log_prob(model, part) for part in x.split(at_once)])

    return Contender(model, log_prob)


def rival(name: str, size: Size) -> Contender:
    """Returns a flow of zuko's or nflows' with five transformations, of 8 bins if splines."""
    module = import_module(f"models.{models.MODULES[name]}")
    width = [size.hidden] * size.blocks if name.startswith("zuko") else size.hidden
    shape = {**RIVAL_SETTINGS, "model": name, "hidden": width, "blocks": size.blocks}
    torch.manual_seed(SEED)
    flow = module.build(size.columns, shape)
    return Contender(flow, partial(module.log_prob, flow), partial(module.sample, flow))


def make(name: str, size: Size) -> Contender:
    """Returns a contender by its name."""
    ours = {OURS: nits_mlp, PLAIN: plain_way}
    return ours[name](size) if name in ours else rival(name, size)


def field(columns: int) -> dict[str, Size]:
    """Returns the size of every contender, ours first."""
    ours = OUR_SIZES[columns]
    rivals = {name: Size(columns, width, 2) for name, width in WIDTHS[columns].items()}
    return {OURS: ours, PLAIN: ours, **rivals}


def training_step(contender: Contender, x: Tensor) -> Callable[[], Tensor]:
    """Returns one step of fused AdamW on these rows, with clipped gradients."""
    parameters = list(contender.module.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad()
        with kernels.using(training=True):
            loss = -contender.log_prob(x).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 10.0)
        optimizer.step()
        return loss.detach()

    return step


def scoring(contender: Contender, x: Tensor) -> Program:
    """Returns the scoring of these rows, without gradients of the weights."""
    return torch.no_grad()(partial(contender.log_prob, x))


def sampling(draw: Callable[[int], Tensor], n: int) -> Program:
    """Returns the drawing of n rows, without gradients."""
    return torch.no_grad()(partial(draw, n))
