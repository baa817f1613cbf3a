"""NITS-MLP, on the range of the training rows widened by 2 % at both ends, or whitened and without ends."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import nits
from models.fitted import Clock, Fitted, Rows, Settings, Values, chunks, taken
from nits.datasets import Split
from nits.likelihood import start_from_data
from nits.rows import Rows as TrainingRows
from nits.schedules import Cosine, Schedule

CHECKPOINTS = Path(__file__).resolve().parents[2] / "out" / "benchmarks"
WIDENED = 0.02
SCORED_AT_ONCE = 8192


@dataclass(frozen=True)
class Shape:
    """The model's shape: PNN layers, hats that are read, and the weight model; no order is the data's."""

    pnn: list[int]
    whiten: bool
    knots: int
    hidden: int
    blocks: int
    dropout: float
    order: list[int]


@dataclass(frozen=True)
class Training:
    """The recipe's numbers; a cosine with floor 1 is a constant rate, 0 epochs are as many as fit."""

    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: int
    floor: float
    average: float
    clip: float
    patience: int
    epochs: int
    start_from_data: bool

    def recipe(self, schedule: Schedule) -> nits.Recipe:
        """Returns the numbers as `nits.fit` takes them; the weights have been started before."""
        return nits.Recipe(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            schedule=schedule,
            average=self.average,
            clip=self.clip,
            patience=self.patience,
            start_from_data=False,
        )


@dataclass
class Noted:
    """A cosine that notes when it is first asked: that is when `nits.fit` has checked the rows and begins."""

    cosine: Cosine
    clock: Clock = field(repr=False)
    begun: float = field(default=math.nan, repr=False)

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns the cosine's factor."""
        if math.isnan(self.begun):
            self.begun = self.clock.seconds
        return self.cosine.factor(step, progress, validation)


@dataclass
class FittedNITS(Fitted):
    """A trained NITS, whose weights can be kept."""

    model: nits.NITS | None = None


def ordered(settings: Settings, columns: int, seed: int) -> Settings:
    """Returns the settings with the order spelled out: "random" is drawn from the seed."""
    if settings["order"] != "random":
        return settings
    return {**settings, "order": np.random.default_rng(seed).permutation(columns).tolist()}


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
    return (nits.Whitened if shape.whiten else nits.NITS).mlp(
        heads,
        hidden=shape.hidden,
        blocks=shape.blocks,
        dropout=shape.dropout,
        order=shape.order or None,
    )


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> FittedNITS:
    """Trains one model; or several, which share the minutes and are mixed, each in an order of its own."""
    members = settings["members"]
    if members == 1:
        return fit_one(split, settings, minutes, seed)
    parts: list[FittedNITS] = []
    clock = Clock(minutes)
    for k in range(members):
        order = np.random.default_rng((seed, k)).permutation(split.train.shape[1]).tolist()
        share = clock.minutes_left / (members - k)
        parts.append(fit_one(split, {**settings, "order": order}, share, members * seed + k))
    return mixed(parts)


def mixed(parts: list[FittedNITS]) -> FittedNITS:
    """Returns the mixture of models in equal parts; its history is the last one's."""

    def log_prob(rows: Rows) -> Values:
        found: Values = np.logaddexp.reduce([part.log_prob(rows) for part in parts]) - math.log(len(parts))
        return found

    return FittedNITS(
        log_prob=log_prob,
        parameters=sum(part.parameters for part in parts),
        epochs=sum(part.epochs for part in parts),
        steps=sum(part.steps for part in parts),
        seconds=sum(part.seconds for part in parts),
        history=parts[-1].history,
        chosen={"members": [part.chosen for part in parts]},
    )


def fit_one(split: Split, settings: Settings, minutes: float, seed: int) -> FittedNITS:
    """Trains with `nits.fit`, which leaves its checkpoints under out/."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    model, training = build(support(split.train), settings), taken(Training, settings)
    if training.start_from_data:
        start_from_data(model, TrainingRows(split.train))
    schedule = Noted(Cosine(training.warmup, training.floor), clock)
    history = nits.fit(
        model,
        split.train,
        validation=split.validation,
        recipe=training.recipe(schedule),
        max_epochs=training.epochs or None,
        max_minutes=clock.minutes_left,
        checkpoint=CHECKPOINTS / f"{split.name}-{settings['hidden']}-{minutes:g}m-seed{seed}.safetensors",
        seed=seed,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    seconds = [schedule.begun + s for s in history.seconds]
    return FittedNITS(
        log_prob=lambda rows: score(model, rows),
        parameters=sum(p.numel() for p in model.parameters()),
        epochs=history.epoch[-1],
        steps=history.step[-1],
        seconds=seconds[-1],
        history=list(zip(seconds, history.validation, strict=True)),
        chosen={"stopped": history.stopped, "best_step": history.best_step, "compiled": history.compiled},
        model=model,
    )


def score(model: nits.NITS, rows: Rows) -> Values:
    """Returns the nats of rows: −inf outside the support."""
    with torch.no_grad():
        parts = [model.log_prob(torch.from_numpy(part)) for part in chunks(rows, SCORED_AT_ONCE)]
    return torch.cat(parts).double().numpy()


def save(model: nits.NITS, settings: Settings, path: Path, *, half: bool) -> None:
    """Writes the weights, in float16 if half, with the buffers, the settings and the support beside them."""
    weights = dict(model.named_parameters())
    state = {
        name: (t.half() if half and name in weights else t).contiguous()
        for name, t in model.state_dict().items()
    }
    ends = {name: [getattr(head, name) for head in model.heads] for name in ("low", "high")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    save_file(state, temporary, metadata={"settings": json.dumps(settings), "support": json.dumps(ends)})
    temporary.replace(path)


def load(path: Path) -> nits.NITS:
    """Returns the model that `save` wrote, in float32."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    ends = json.loads(metadata["support"])
    settings = {"whiten": False} | json.loads(metadata["settings"])  # files of before it could be asked for
    model = build((ends["low"], ends["high"]), settings)
    model.load_state_dict({name: t.float() if t.is_floating_point() else t for name, t in state.items()})
    return model.eval()
