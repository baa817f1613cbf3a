"""NITS-MLP and NITS-CONV: built from settings and trained by `nits.fit` within some minutes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import nits
from models.fitted import OPTIMIZERS, Clock, Fitted, Points, Settings, score
from nits.datasets import Split
from nits.model.density import Density
from nits.tables.orders import greedy
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from nits.training.schedules import Cosine
from nits.weights import ConvSize, WindowSize, activations

Ends = tuple[list[float], list[float]]
"""Both ends of every column's support."""

WIDENED = 0.02
SIDE = 8
"""BSDS300's patches are 8 × 8 grey pixels, of which the last is left out."""


def support(train: Points) -> Ends:
    """Returns the range of the training rows, widened by 2 % of it at both ends."""
    low, high = (f(train, axis=0).astype(np.float64) for f in (np.min, np.max))
    margin = WIDENED * (high - low)
    return (low - margin).tolist(), (high + margin).tolist()


def mlp(ends: Ends, settings: Settings) -> Density:
    """Returns the untrained NITS-MLP of columns with these ends; a whitened one has none."""
    if settings["whiten"]:
        ends = ([-math.inf] * len(ends[0]), [math.inf] * len(ends[0]))
    pnn, knots = tuple(settings["pnn"]), settings["knots"]
    heads = [nits.heads.Continuous(low, high, pnn, knots) for low, high in zip(*ends, strict=True)]
    model = nits.NITS.mlp(
        heads,
        hidden=settings["hidden"],
        blocks=settings["blocks"],
        dropout=settings["dropout"],
        order=settings["order"] or None,
        activation=activations.named(settings["activation"]),
    )
    return nits.Whitened(model) if settings["whiten"] else model


def conv(columns: int, settings: Settings) -> Density:
    """Returns the untrained NITS-CONV of patches without their last pixels, on all real numbers."""
    names = ("filters", "blocks", "dilations", "dropout")
    filters, blocks, dilations, dropout = (settings[name] for name in names)
    model = nits.NITS.conv(
        (1, SIDE, SIDE),
        nits.heads.Continuous(hidden=tuple(settings["pnn"]), knots=settings["knots"]),
        size=ConvSize(filters, blocks, tuple(dilations), dropout),
        present=torch.arange(SIDE**2).view(SIDE, SIDE) < columns,
    )
    return nits.Whitened(model) if settings["whiten"] else model


def window(columns: int, settings: Settings) -> Density:
    """Returns the untrained network on windows of patches, averaged over their symmetries.

    The last pixel of a patch less its mean, which is left out, makes its pixels add up to zero.
    """
    names = ("reach", "hidden", "blocks", "dropout")
    model = nits.NITS.conv(
        (1, SIDE, SIDE),
        nits.heads.Continuous(hidden=tuple(settings["pnn"])),
        size=WindowSize(*(settings[name] for name in names)),
        present=torch.arange(SIDE**2).view(SIDE, SIDE) < columns,
    )
    return nits.Symmetric(model, nits.images.symmetries(SIDE, SIDE), balanced=True)


BUILD: dict[str, Callable[[Points, Settings], Density]] = {
    "nits-mlp": lambda train, settings: mlp(support(train), settings),
    "nits-conv": lambda train, settings: conv(train.shape[1], settings),
    "nits-window": lambda train, settings: window(train.shape[1], settings),
}


PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}


def recipe(settings: Settings) -> nits.Recipe:
    """Returns the settings as `nits.fit` takes them; the weights are started before.

    A cosine with floor 1 is a constant rate.
    """
    names = ("batch_size", "learning_rate", "weight_decay", "average", "clip", "patience")
    return nits.Recipe(
        **{name: settings[name] for name in names},
        optimizer=OPTIMIZERS[settings["optimizer"]],
        schedule=Cosine(settings["warmup"], settings["floor"]),
        start_from_data=False,
        precision=PRECISIONS[settings.get("precision", "float32")],
    )


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Trains one model; or several, which share the minutes and are mixed in equal parts.

    If the settings have no order, each of several draws one of its own.
    """
    members = settings.get("members", 1)
    if members == 1:
        return fit_one(split, settings, minutes, seed)
    clock, parts = Clock(minutes), []
    for k in range(members):
        drawn = np.random.default_rng((seed, k)).permutation(split.train.shape[1]).tolist()
        member = {**settings, "order": settings["order"] or drawn}
        share = clock.minutes_left / (members - k)
        parts.append(fit_one(split, member, share, members * seed + k))
    return mixed(parts)


def fit_one(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Trains one model; what `nits.fit` does before its first step is not on the clock."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    start: Path | None = settings.get("start")
    model = nits.load(start) if start else BUILD[settings["model"]](split.train, settings)
    if settings["start_from_data"] and not start:
        start_from_data(model, Rows(split.train))
    begun, kept = clock.seconds, settings.get("checkpoint")
    history = nits.fit(
        model,
        split.train,
        validation=split.validation[: settings.get("validation_rows")],
        recipe=recipe(settings),
        max_epochs=settings["epochs"] or None,
        max_minutes=clock.minutes_left,
        seed=seed,
        checkpoint=kept,
        resume=kept if kept and kept.exists() else None,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    seconds = [begun + s for s in history.seconds]
    return Fitted(
        log_prob=partial(score, model.log_prob),
        parameters=sum(p.numel() for p in model.parameters()),
        epochs=history.epoch[-1],
        steps=history.step[-1],
        seconds=seconds[-1],
        history=list(zip(seconds, history.validation, strict=True)),
        chosen={"stopped": history.stopped, "best_step": history.best_step},
        model=model,
    )


def mixed(parts: list[Fitted]) -> Fitted:
    """Returns the mixture of models in equal parts; its history is the last one's."""
    model = nits.Mixture([part.model for part in parts])
    return Fitted(
        log_prob=partial(score, model.log_prob),
        parameters=sum(part.parameters for part in parts),
        epochs=sum(part.epochs for part in parts),
        steps=sum(part.steps for part in parts),
        seconds=sum(part.seconds for part in parts),
        history=parts[-1].history,
        chosen={"members": [part.chosen for part in parts]},
        model=model,
    )


def ordered(settings: Settings, train: Points, seed: int) -> Settings:
    """Returns the settings with the order spelled out: random, reversed, greedy, or as 2,0,1."""
    order, columns = settings["order"], train.shape[1]
    if order == "random":
        order = np.random.default_rng(seed).permutation(columns).tolist()
    elif order == "reversed":
        order = list(range(columns))[::-1]
    elif order == "greedy":
        order = greedy(train)
    elif isinstance(order, str):
        order = [int(part) for part in order.split(",")]
    return {**settings, "order": order}
