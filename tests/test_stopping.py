"""When training looks at validation rows and when it stops: never because of the warm-up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

import nits
from nits.training import stopping
from nits.training.history import History
from nits.training.likelihood import mean_log_likelihood, start_from_data
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows, split
from two_columns import QUICK, rows, small, weights

FLAT = replace(QUICK, schedule=nits.Constant(warmup=1), patience=3)


def told(validation: Sequence[float], every: int = 10) -> History:
    steps = [every * (k + 1) for k in range(len(validation))]
    return History(step=steps, validation=list(validation))


def test_patience_counts_evaluations_without_a_better_one() -> None:
    assert not stopping.stalled(told([]), FLAT)
    assert not stopping.stalled(told([-3, -2, -2, -2]), FLAT)  # two
    assert stopping.stalled(told([-3, -2, -2, -2, -2]), FLAT)
    assert not stopping.stalled(told([-3, -2, -2, -2, -1.9]), FLAT)
    assert stopping.stalled(told([-3, -2, math.nan, math.nan, math.nan]), FLAT)
    assert stopping.stalled(told([math.nan] * 4), FLAT)


def test_a_stall_lasts_a_quarter_of_the_steps() -> None:
    rising = [-100.0 + k for k in range(90)]
    assert not stopping.stalled(told(rising + [-50.0] * 29), FLAT)
    assert stopping.stalled(told(rising + [-50.0] * 30), FLAT)


def test_no_evaluation_before_twice_the_warm_up_counts() -> None:
    recipe = replace(FLAT, schedule=nits.Constant(warmup=50))
    falling = [-float(k) for k in range(10)]  # steps 10 … 100
    assert not stopping.stalled(told(falling), recipe)
    assert stopping.counted(told(falling), stopping.settled(recipe)) == []
    # The first that counts is far behind, and the run goes on as long as it gains on that.
    gains = [-20.0 + k / 10 for k in range(20)]
    assert not stopping.stalled(told(falling + gains), recipe)
    assert stopping.stalled(told(falling + gains + [-30.0] * 10), recipe)


@pytest.mark.parametrize(
    ("schedule", "steps"), [(nits.Cosine(7), 14), (nits.Plateau(9), 18), (None, 200)]
)
def test_schedules_have_a_warm_up(schedule: nits.Plateau | nits.Cosine | None, steps: int) -> None:
    assert stopping.settled(Recipe(schedule=schedule)) == steps


class Bare:
    """A schedule without a warm-up."""

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        return 1.0


def test_a_schedule_of_the_users_own_needs_none() -> None:
    assert stopping.settled(Recipe(schedule=Bare())) == 0


def test_a_long_warm_up_does_not_stop_training() -> None:
    """At a rate that is soon much too high every evaluation is behind the first one."""
    schedule = nits.Constant(warmup=100)
    recipe = nits.Recipe(batch_size=64, learning_rate=3.0, patience=3, schedule=schedule)
    history = nits.fit(small(), rows(), max_steps=120, recipe=recipe, progress=False)
    assert len(history.validation) > 4
    assert max(history.validation[1:]) < history.validation[0]
    assert history.step[-1] == 120
    assert history.stopped == "budget"


def test_training_returns_nothing_worse_than_the_start() -> None:
    x = rows()
    recipe = nits.Recipe(batch_size=64, learning_rate=3.0, schedule=nits.Constant(warmup=1))
    model, start = small(), small()
    history = nits.fit(model, x, max_steps=30, recipe=recipe, progress=False)
    train, held_out = split(Rows(x), 0.1, 0)
    assert held_out is not None
    start_from_data(start, train)
    assert history.best_step == 0
    assert torch.equal(weights(model), weights(start))
    assert history.start == mean_log_likelihood(start, held_out) == history.final_validation
    assert 0 not in history.step
    assert len(history.step) == len(history.validation)


def test_the_plateau_takes_no_notice_of_the_warm_up() -> None:
    schedule = nits.Plateau(warmup=20, patience=1)
    recipe = nits.Recipe(batch_size=64, learning_rate=2.0, schedule=schedule, patience=100)
    history = nits.fit(small(), rows(), max_steps=80, recipe=recipe, progress=False)
    after = stopping.settled(recipe)
    behind = [v for s, v in zip(history.step, history.validation, strict=True) if s <= after]
    assert len(behind) > 2
    assert min(behind[1:]) < behind[0]  # a stall, if it counted
    rates = dict(zip(history.step, history.learning_rate, strict=True))
    assert all(rate == 2.0 for step, rate in rates.items() if 20 <= step <= after + 1)


def test_one_evaluation_per_epoch_and_more_in_short_runs() -> None:
    def every(budget: Budget, per_epoch: int, held_out: int = 0) -> int:
        return stopping.steps_between(budget, batch=64, per_epoch=per_epoch, held_out=held_out)

    assert every(Budget(max_epochs=100), 50) == 50
    assert every(Budget(max_steps=100_000), 50) == 50  # 4,000 would waste 40 % of the budget
    assert every(Budget(max_steps=1000), 5000) == 40
    assert every(Budget(max_steps=3), 5000) == 1
    assert every(Budget(max_epochs=100, max_steps=10_000), 50) == 50
    assert every(Budget(max_minutes=60), 50) == 50


@pytest.mark.parametrize("held_out", [10, 700, 5000, 1_000_000])
@pytest.mark.parametrize("batch", [32, 1024])
@pytest.mark.parametrize("per_epoch", [1, 8, 4000])
@pytest.mark.parametrize("budget", [Budget(100), Budget(None, 5000), Budget(None, None, 5.0)])
def test_evaluations_take_at_most_a_twentieth_of_the_time(
    held_out: int, batch: int, per_epoch: int, budget: Budget
) -> None:
    steps = stopping.steps_between(budget, batch=batch, per_epoch=per_epoch, held_out=held_out)
    scored = min(held_out, stopping.VALIDATION_ROWS)
    assert scored / 3 <= 0.05 * steps * batch * (1 + 1e-9)
    if budget.max_epochs is not None:
        assert steps % per_epoch == 0


def test_training_evaluates_at_these_steps() -> None:
    history = nits.fit(small(), rows(), max_steps=20, recipe=QUICK, progress=False)
    assert history.step == [7, 14, 20]  # 60 held-out rows of a third, a twentieth of 7 times 64
    history = nits.fit(small(), rows(), validation=0.5, max_epochs=9, recipe=QUICK, progress=False)
    assert history.epoch == [8.0, 9.0]


def test_minutes_end_by_patience_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "SECONDS", 0.0)
    recipe = nits.Recipe(batch_size=64, learning_rate=3.0, patience=2, schedule=nits.Constant(1))
    history = nits.fit(small(), rows(), max_minutes=1.0, recipe=recipe, progress=False)
    assert history.stopped == "patience"
    assert history.seconds[-1] < 50
