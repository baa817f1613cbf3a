"""The contenders of `speed.py`, rivals as wide as their number of weights asks, and what each has to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, cast

import numpy as np
import plain
import torch
from mlp_speed import SEED, made_dense, started_at_quantiles
from models.fitted import Settings
from torch import Tensor, nn

OURS = "nits-mlp"
UNCOMPILED = "nits-mlp-uncompiled"
PLAIN = "plain"

NOISE = 0.005
"""Size of the weights of our last layer, on top of the quantiles where it starts."""

SCORED_AT_ONCE = 1024
"""Rows that the plain way scores at once: autograd keeps all units of all PNNs until the slope is known."""

PROBES = (64, 128, 192)
"""Widths at which a rival's weights are counted: their number is quadratic in the width."""

SPLINES = {"dropout": 0.0, "bins": 8, "tail_bound": 3.0}
TRANSFORMS = 5
RIVAL_BLOCKS = 2


class Size(NamedTuple):
    """D columns; the width of the hidden layers; residual blocks, or for zuko hidden layers."""

    columns: int
    hidden: int
    blocks: int


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


def nits_mlp(size: Size, *, compiled: bool) -> Contender:
    """Returns NITS-MLP, started at the quantiles of standard normal rows."""
    model, _ = started_at_quantiles(size.columns, size.hidden, NOISE, size.blocks)
    model.compiled = model.native = compiled
    return Contender(model, model.log_prob, model.sample)


def plain_way(size: Size) -> Contender:
    """Returns the same model evaluated as `plain.py` does, with the same weights."""
    model = made_dense(started_at_quantiles(size.columns, size.hidden, NOISE, size.blocks)[0])

    def log_prob(x: Tensor) -> Tensor:
        at_once = len(x) if torch.is_grad_enabled() else SCORED_AT_ONCE
        return torch.cat([plain.log_prob(model, part) for part in x.split(at_once)])

    return Contender(model, log_prob)


def zuko_flow(name: str, size: Size) -> Contender:
    """Returns an autoregressive flow of zuko's with five transformations, of 8 bins if they are splines."""
    from models import zuko_flows

    settings: Settings = {"transforms": TRANSFORMS, "bins": SPLINES["bins"], "model": name}
    torch.manual_seed(SEED)
    flow = zuko_flows.BUILD[name](size.columns, {**settings, "hidden": [size.hidden] * size.blocks})
    return Contender(
        flow,
        partial(zuko_flows.log_prob, flow),
        lambda n: cast(Tensor, flow().sample(torch.Size((n,)))),
    )


def nflows_flow(name: str, size: Size) -> Contender:
    """Returns a spline flow of nflows' with five spline layers of 8 bins on [−3, 3]."""
    from models import nflows_flows

    settings: Settings = {**SPLINES, "transforms": TRANSFORMS, "model": name}
    torch.manual_seed(SEED)
    flow = nflows_flows.build(
        size.columns, {**settings, "hidden": size.hidden, "blocks": size.blocks}
    )
    sample = cast(Callable[[int], Tensor], flow.sample)
    return Contender(flow, partial(nflows_flows.log_prob, flow), sample)


RIVALS: dict[str, Callable[[Size], Contender]] = {
    "zuko-nsf": partial(zuko_flow, "zuko-nsf"),
    "zuko-maf": partial(zuko_flow, "zuko-maf"),
    "nflows-rq-autoregressive": partial(nflows_flow, "nflows-rq-autoregressive"),
    "nflows-rq-coupling": partial(nflows_flow, "nflows-rq-coupling"),
}

MAKE: dict[str, Callable[[Size], Contender]] = {
    OURS: partial(nits_mlp, compiled=True),
    UNCOMPILED: partial(nits_mlp, compiled=False),
    PLAIN: plain_way,
    **RIVALS,
}


def matched(name: str, columns: int, parameters: int) -> Size:
    """Returns the size at which a rival has most nearly that many weights, from a parabola through three."""
    counts = [RIVALS[name](Size(columns, width, RIVAL_BLOCKS)).parameters for width in PROBES]
    parabola = np.polyfit(PROBES, counts, 2)
    a, b, c = parabola
    root = (np.sqrt(b * b - 4 * a * (c - parameters)) - b) / (2 * a)
    near = [max(1, int(root)), max(1, int(root)) + 1]
    width = min(near, key=lambda w: abs(float(np.polyval(parabola, w)) - parameters))
    return Size(columns, width, RIVAL_BLOCKS)


@cache
def sizes(ours: Size) -> dict[str, Size]:
    """Returns the size of every contender: ours, and that of the rivals with as many weights."""
    parameters = nits_mlp(ours, compiled=False).parameters
    own = {name: ours for name in MAKE if name not in RIVALS}
    return own | {name: matched(name, ours.columns, parameters) for name in RIVALS}


def training_step(contender: Contender, x: Tensor) -> Callable[[], object]:
    """Returns one step of fused AdamW on these rows, with clipped gradients."""
    parameters = list(contender.module.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = -contender.log_prob(x).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 10.0)
        optimizer.step()
        return loss.detach()

    return step


def scoring(contender: Contender, x: Tensor) -> Callable[[], object]:
    """Returns the scoring of these rows, without gradients of the weights."""

    def score() -> Tensor:
        with torch.no_grad():
            return contender.log_prob(x)

    return score


def sampling(contender: Contender, n: int) -> Callable[[], object]:
    """Returns the drawing of n rows, without gradients."""
    draw = contender.sample
    if draw is None:
        raise ValueError("the plain way has no sampler; leave it out.")

    def sample() -> Tensor:
        with torch.no_grad():
            return draw(n)

    return sample
