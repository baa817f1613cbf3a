"""NITS-MLP, on the range of the training rows widened by 2 % at both ends, or whitened and without ends."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import nits
from models.fitted import Clock, Rows, Settings, chunks, taken
from models.nits_training import FittedNITS, mixed, train
from models.normalized import NORMALIZED, normalized
from nits.datasets import Split
from nits.weights.activations import named
from nits.weights.block_linear import BlockLinear

WIDENED = 0.02


@dataclass(frozen=True)
class Shape:
    """The model's shape: PNN layers, hats that are read, and the weight model; no order is the data's."""

    pnn: list[int]
    whiten: bool
    knots: int
    hidden: int
    blocks: int
    dropout: float
    activation: str
    order: list[int]


def support(train: Rows) -> tuple[list[float], list[float]]:
    """Returns both ends of every column: the range of the training rows, widened by 2 % of it."""
    low = np.min([part.min(0) for part in chunks(train, 65536)], 0).astype(np.float64)
    high = np.max([part.max(0) for part in chunks(train, 65536)], 0).astype(np.float64)
    margin = WIDENED * (high - low)
    return (low - margin).tolist(), (high + margin).tolist()


def build(ends: tuple[list[float], list[float]], settings: Settings) -> nits.NITS:
    """Returns the untrained model of columns with these ends."""
    shape = taken(Shape, settings)
    if shape.whiten:
        ends = ([-math.inf] * len(ends[0]), [math.inf] * len(ends[0]))
    heads = [
        nits.heads.Continuous(low, high, tuple(shape.pnn), shape.knots)
        for low, high in zip(*ends, strict=True)
    ]
    norms = shape.activation == NORMALIZED
    model = (nits.Whitened if shape.whiten else nits.NITS).mlp(
        heads,
        hidden=shape.hidden,
        blocks=shape.blocks,
        dropout=shape.dropout,
        order=shape.order or None,
        activation=named("relu" if norms else shape.activation),
    )
    return normalized(model) if norms else model


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> FittedNITS:
    """Trains one model; or several, which share the minutes and are mixed.

    If the settings have no order, each of several draws one of its own.
    """
    members = settings["members"]
    if members == 1:
        return fit_one(split, settings, minutes, seed)
    parts: list[FittedNITS] = []
    clock = Clock(minutes)
    for k in range(members):
        drawn = np.random.default_rng((seed, k)).permutation(split.train.shape[1]).tolist()
        order = settings["order"] or drawn
        share = clock.minutes_left / (members - k)
        parts.append(fit_one(split, {**settings, "order": order}, share, members * seed + k))
    return mixed(parts)


def fit_one(split: Split, settings: Settings, minutes: float, seed: int) -> FittedNITS:
    """Trains one model."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    model = build(support(split.train), settings)
    return train(model, split, settings, clock, seed, str(settings["hidden"]))


def masked(model: nits.NITS) -> dict[str, torch.Tensor]:
    """Returns where the triangular matrices are not zero, by their names in the state."""
    return {
        f"{name}.weight": layer.mask.bool()
        for name, layer in model.named_modules()
        if isinstance(layer, BlockLinear)
    }


def save(model: nits.NITS, settings: Settings, path: Path, *, half: bool) -> None:
    """Writes the weights, in float16 if half, with the buffers, the settings and the support beside them.

    Triangular matrices are written without their zeros, row by row.
    """
    weights, masks = dict(model.named_parameters()), masked(model)
    state = model.state_dict()
    state |= {name: state[name][mask] for name, mask in masks.items()}
    state = {
        name: (t.half() if half and name in weights else t).contiguous()
        for name, t in state.items()
    }
    ends = {name: [getattr(head, name) for head in model.heads] for name in ("low", "high")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    save_file(
        state, temporary, metadata={"settings": json.dumps(settings), "support": json.dumps(ends)}
    )
    temporary.replace(path)


def load(path: Path) -> nits.NITS:
    """Returns the model that `save` wrote, in float32."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    ends = json.loads(metadata["support"])
    before = {
        "whiten": False,
        "activation": "relu",
    }  # what files say nothing of that are older than it
    settings = before | json.loads(metadata["settings"])
    model = build((ends["low"], ends["high"]), settings)
    state = {name: t.float() if t.is_floating_point() else t for name, t in state.items()}
    for name, mask in masked(model).items():
        state[name] = torch.zeros(mask.shape).masked_scatter(mask, state[name])
    model.load_state_dict(state)
    return model.eval()
