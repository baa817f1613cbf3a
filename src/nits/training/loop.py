"""One training run: its state and its loop."""

from __future__ import annotations

import copy
import math
import time
from functools import cached_property
from pathlib import Path

import torch

from nits.model.density import Density
from nits.training import gradients, ranks, resuming, stopping
from nits.training.clipping import clipped
from nits.training.exchange import Gradient
from nits.training.history import History
from nits.training.interrupts import Interrupts
from nits.training.kept import Kept
from nits.training.likelihood import mean_log_likelihood, start_from_data
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows
from nits.weights import WeightModel

MAX_SKIPPED = 50
"""Steps in a row with a gradient that is not finite after which training gives up."""

WORTH_COMPILING = 1.5e9
"""PNN weights evaluated in a run from which the kernels' compile time pays for itself."""


class Loop:
    """The state of one training run: what a checkpoint holds."""

    def __init__(
        self,
        model: Density,
        train: Rows,
        held_out: Rows | None,
        recipe: Recipe,
        budget: Budget,
        seed: int,
    ) -> None:
        self.model = model
        self.ranks = ranks.current()
        self.train = train
        self.held_out = held_out
        self.recipe = recipe
        self.budget = budget
        self.seed = seed
        self.batch = min(recipe.batch_size, len(train))
        self.per_epoch = max(1, len(train) // self.batch)
        self.history = History()
        self.step = 0
        self.seconds = 0.0
        self.best = -math.inf
        self.recent: list[float] = []  # log-likelihoods of the steps since the last evaluation
        self.counted: list[float] = []  # validation that stopping and schedules go by
        self.bad = 0  # steps skipped in a row
        self.whole = True  # whether no step or evaluation is half done
        self.every = stopping.steps_between(
            budget,
            batch=self.batch,
            per_epoch=self.per_epoch,
            held_out=0 if held_out is None else len(held_out),
        )
        if recipe.precision is not None and not any(map(_lowers, model.modules())):
            raise ValueError(
                "precision is for the networks of images, CausalConv and CausalWindow, but the "
                "model has none; leave it out."
            )
        self.part = self.ranks.part(self.batch)
        self.feed = train.feed(self.batch, seed, self.part)
        self.clock = 0.0  # of the first rank, if there are several
        self.wish = self.stop = False  # whether this rank, and any of them, wants to stop
        self.begun = 0.0

    def prepare(self, resume: str | Path | None) -> None:
        """Sets initial weights, or those of a checkpoint, and everything that follows them."""
        self.model.reseed(self.seed)  # noise in the rows that the start is fitted to
        if resume is None and self.recipe.start_from_data:
            start_from_data(self.model, self.train)
        self.average = copy.deepcopy(self.model).eval()
        self.parameters = list(self.model.parameters())
        self.averages = list(self.average.parameters())
        self.optimizer = self.recipe.optimizer.build(
            self.parameters,
            self.averages,
            rate=self.recipe.learning_rate,
            weight_decay=self.recipe.weight_decay,
        )
        self.best_weights = Kept(self.average)
        if resume is not None:
            resuming.load(self, Path(resume))
        self.ranks.share([*self.model.state_dict().values(), *self.average.state_dict().values()])
        if not self.ranks.alone:
            self.model.take_part(self.part.start, self.batch)

    def worth_compiling(self) -> bool:
        """Returns whether torch.compile pays, by the amount of work only: runs stay repeatable."""
        steps = self.budget.steps(self.per_epoch)
        rows = math.inf if steps is None else steps * self.batch
        long = self.budget.max_minutes is None or self.budget.max_minutes >= 1
        return long and rows * self.model.weights_per_row > WORTH_COMPILING

    def begin(self) -> None:
        """Starts the clock."""
        self.model.train()
        self.begun = time.monotonic()
        self.resumed, self.started = self.seconds, self.now()

    def used(self, now: float) -> float:
        """Returns the share of the budget that is used up."""
        self.seconds = self.resumed + now - self.started
        return self.budget.progress(self.step, self.seconds, self.per_epoch)

    def figures(self, seconds: float) -> tuple[float, float | None, float]:
        """Returns what there is to tell so many seconds after an evaluation; see `Reporter`."""
        if self.recent:
            return self._recent(), self._latest(), self._speed(seconds)
        h = self.history  # of no evaluation, if there was time for no step
        train, speed = (h.train[-1], h.rows_per_second[-1]) if h.train else (math.nan, 0.0)
        return train, self._latest(), speed

    def now(self) -> float:
        """Returns the time by which all ranks go."""
        return time.monotonic() if self.ranks.alone else self.clock

    def check(self, interrupts: Interrupts) -> None:
        """Raises KeyboardInterrupt if Ctrl-C came; of several ranks, in all at the same step."""
        if self.ranks.alone:
            interrupts.check()
        elif self.stop:
            raise KeyboardInterrupt
        self.wish = interrupts.came

    def due(self, seconds: float) -> bool:
        """Returns whether to evaluate: by steps, and by the clock if the budget has no steps."""
        if self.budget.steps(self.per_epoch) is not None:
            return self.step % self.every == 0
        if seconds > stopping.seconds_between(self.budget):
            return True
        evaluated = self.history.step[-1] if self.history.step else 0
        return self.step - evaluated >= self.every and seconds > stopping.SECONDS

    def advance(self, progress: float) -> None:
        """Takes one step; one whose loss or gradient is not finite is counted and skipped."""
        rate = self.recipe.rate(self.step, progress, self.counted)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.reseed(self.step_seed())
        value = self.gradient()
        norm = clipped(self.parameters, self.recipe.clip)
        self.whole = False
        if self.counts(value, norm):
            self.optimizer.step()
            self._average()
        self.whole = True

    def counts(self, value: float, norm: float) -> bool:
        """Counts a step; returns whether to take it, by its log-likelihood and gradient."""
        self.step += 1
        if math.isfinite(value) and math.isfinite(norm):
            self.recent.append(value)
            self.bad = 0
            return True
        self._skip()
        return False

    @cached_property
    def exchanged(self) -> Gradient:
        """The gradient as ranks exchange it."""
        return Gradient(self.model, ranks.EXTRAS)

    def gradient(self) -> float:
        """Sets the gradient of the next batch's mean log-likelihood, and returns that."""
        return gradients.taken(self)

    def step_seed(self) -> int:
        """Returns the seed of what is random in the next step."""
        return self.seed * 1_000_003 + self.step

    def _skip(self) -> None:
        self.history.skipped += 1
        self.bad += 1
        if self.bad >= MAX_SKIPPED:
            raise RuntimeError(
                f"{self.bad} steps in a row had a loss or gradient that is not finite; "
                "try a lower learning_rate, a longer warm-up, or standardized columns without "
                "outliers."
            )

    def _average(self) -> None:
        self.recipe.optimizer.move_average(self.averages, self.parameters, self.decay())

    def decay(self) -> float:
        """Returns how fast the average moves after a step: faster at first, to forget the start."""
        return min(self.recipe.average, self.step / (self.step + 10))

    def evaluate(self, seconds: float, value: float | None) -> None:
        """Takes the validation of the averaged weights; keeps these if they are the best.

        seconds: Since the evaluation before.
        """
        h = self.history
        self.whole = False
        h.step.append(self.step)
        h.epoch.append(self.step / self.per_epoch)
        h.seconds.append(self.seconds)
        h.train.append(self._recent())
        h.learning_rate.append(self.optimizer.param_groups[0]["lr"])
        h.rows_per_second.append(self._speed(seconds))
        self.recent = []
        if value is not None:
            h.validation.append(value)
            self.counted = stopping.counted(h, stopping.settled(self.recipe))
            if h.validation[-1] > self.best:
                self._keep(h.validation[-1])
            if stopping.stalled(h, self.recipe):
                h.stopped = "patience"
        self.whole = True

    def _keep(self, best: float) -> None:
        """Keeps the averaged weights, which are the best so far."""
        self.best = best
        self.history.best_step = self.step
        self.best_weights.take(self.average.state_dict())

    def evaluate_start(self, value: float | None) -> None:
        """Takes the validation before the first step: no result may be worse than the start."""
        if value is not None:
            self.history.start = value
            self.best = max(self.best, value)  # the larger of −∞ and NaN is −∞

    def validated(self) -> float | None:
        """Returns the mean log-likelihood of validation rows, with the averaged weights."""
        if self.held_out is None:
            return None
        self.optimizer.zero_grad(set_to_none=True)  # room for the rows that are scored
        self.average.reseed(self.seed)
        return mean_log_likelihood(self.average, self.looked_at(), self.ranks)

    def looked_at(self) -> Rows:
        """Returns the validation rows of an evaluation."""
        held_out = self.train if self.held_out is None else self.held_out
        return held_out.subset(torch.arange(min(len(held_out), stopping.VALIDATION_ROWS)))

    def _recent(self) -> float:
        return sum(self.recent) / len(self.recent) if self.recent else math.nan

    def _latest(self) -> float | None:
        return self.history.validation[-1] if self.history.validation else None

    def _speed(self, seconds: float) -> float:
        return len(self.recent) * self.batch / max(seconds, 1e-9)

    def agree(self) -> None:
        """Counts the run as interrupted if one of the ranks was, be it after the last step."""
        if self.ranks.summed(float(self.history.stopped == "interrupted"))[0]:
            self.history.stopped = "interrupted"

    def finish(self) -> None:
        """Puts the best averaged weights, or the last ones without validation, into the model."""
        self.optimizer.zero_grad(set_to_none=True)
        self.optimizer.state.clear()
        state = self.average.state_dict() if self.held_out is None else self.best_weights.state()
        self.model.load_state_dict(state)
        self.model.take_part(0, None)
        self.model.eval()
        self.model.reseed(self.seed)  # noise as in all evaluations
        if self.held_out is not None:
            self.history.final_validation = mean_log_likelihood(
                self.model, self.held_out, self.ranks
            )
        self.model.reseed(None)


def _lowers(module: torch.nn.Module) -> bool:
    return isinstance(module, WeightModel) and module.lowers
