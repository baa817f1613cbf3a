"""NITS-CONV on the patches of BSDS300: 8 × 8 grey pixels, of which the last is left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import nits
from models.fitted import Clock, Settings, taken
from models.nits_training import FittedNITS, train
from nits.datasets import Split
from nits.weights import ConvSize

SIDE = 8


@dataclass(frozen=True)
class Shape:
    """The model's shape: PNN layers, hats that are read, and the convolutional network."""

    pnn: list[int]
    whiten: bool
    knots: int
    filters: int
    blocks: int
    dilations: list[int]
    dropout: float


def build(columns: int, settings: Settings) -> nits.NITS:
    """Returns the untrained model of patches without their last pixels, on all real numbers."""
    if columns > SIDE**2:
        raise ValueError(
            f"patches must have at most {SIDE**2} pixels, but have {columns}; take bsds300."
        )
    shape = taken(Shape, settings)
    present = torch.arange(SIDE**2).view(SIDE, SIDE) < columns
    return (nits.Whitened if shape.whiten else nits.NITS).conv(
        (1, SIDE, SIDE),
        nits.heads.Continuous(hidden=tuple(shape.pnn), knots=shape.knots),
        size=ConvSize(shape.filters, shape.blocks, tuple(shape.dilations), shape.dropout),
        present=present,
    )


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> FittedNITS:
    """Trains the model."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    model = build(split.train.shape[1], settings)
    return train(model, split, settings, clock, seed, f"conv{settings['filters']}")
