"""What our models share: the recipe's numbers, training by the clock, scores and mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import nits
from models import variants
from models.fitted import OPTIMIZERS, Clock, Fitted, Rows, Settings, Values, chunks, taken
from nits.datasets import Split
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows as TrainingRows
from nits.training.schedules import Cosine, Schedule

CHECKPOINTS = Path(__file__).resolve().parents[2] / "out" / "benchmarks"
SCORED_AT_ONCE = 8192


@dataclass(frozen=True)
class Training:
    """The recipe's numbers; a cosine with floor 1 is a constant rate, 0 epochs are as many as fit."""

    optimizer: str
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
            optimizer=OPTIMIZERS.get(self.optimizer, nits.AdamW()),
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


def train(
    model: nits.NITS, split: Split, settings: Settings, clock: Clock, seed: int, name: str
) -> FittedNITS:
    """Trains with `nits.fit`, which leaves its checkpoints under out/, for the minutes that are left."""
    training = taken(Training, settings)
    if training.start_from_data:
        start_from_data(model, TrainingRows(split.train))
    schedule = Noted(Cosine(training.warmup, training.floor), clock)
    recipe = training.recipe(schedule)
    if training.optimizer in variants.VARIANTS:
        rows = split.train, split.validation
        history = variants.fit(training.optimizer, model, rows, recipe, clock.minutes_left, seed)
    else:
        history = nits.fit(
            model,
            split.train,
            validation=split.validation,
            recipe=recipe,
            max_epochs=training.epochs or None,
            max_minutes=clock.minutes_left,
            checkpoint=CHECKPOINTS
            / f"{split.name}-{name}-{clock.minutes:g}m-seed{seed}.safetensors",
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
        chosen={
            "stopped": history.stopped,
            "best_step": history.best_step,
            "compiled": history.compiled,
        },
        model=model,
    )


def score(model: nits.NITS, rows: Rows) -> Values:
    """Returns the nats of rows: −inf outside the support."""
    with torch.no_grad():
        parts = [model.log_prob(torch.from_numpy(part)) for part in chunks(rows, SCORED_AT_ONCE)]
    return torch.cat(parts).double().numpy()


def mixed(parts: list[FittedNITS]) -> FittedNITS:
    """Returns the mixture of models in equal parts; its history is the last one's."""

    def log_prob(rows: Rows) -> Values:
        found: Values = np.logaddexp.reduce([part.log_prob(rows) for part in parts]) - math.log(
            len(parts)
        )
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
