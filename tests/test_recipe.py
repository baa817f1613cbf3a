"""Schedules and budgets: the learning rate at a step, and when training ends."""

from __future__ import annotations

import pytest

import nits
from nits.training.recipe import Budget
from two_columns import rows, small


def test_a_plateau_cuts_the_rate_when_validation_stalls() -> None:
    def factor(*validation: float) -> float:
        return nits.Plateau(warmup=1, cut=0.1, patience=2).factor(50, 0.5, list(validation))

    assert factor() == 1
    assert factor(-3, -2, -2.5) == 1  # one look without a better figure
    assert factor(-3, -2, -2.5, -2) == pytest.approx(0.1)  # as good is not better
    assert factor(-3, -2, -2.5, -2, -1, -1.5) == pytest.approx(0.1)  # the best again, then one look
    assert factor(-3, -2, -2.5, -2, -2.1, -2.2) == pytest.approx(0.01)


def test_fit_tells_the_plateau_what_validation_said() -> None:
    schedule = nits.Plateau(warmup=1, patience=1)
    recipe = nits.Recipe(batch_size=64, learning_rate=0.05, patience=100, schedule=schedule)
    history = nits.fit(
        small(), rows(300), validation=rows(30, 5), max_epochs=20, recipe=recipe, progress=False
    )
    assert history.epoch == [1.0 + k for k in range(20)]
    seen = [history.validation[:i] for i in range(20)]
    assert history.learning_rate == [0.05 * schedule.factor(9, 0.5, before) for before in seen]
    assert history.learning_rate[-1] < 0.05 / 2


def test_a_cosine_falls_from_one_to_its_floor() -> None:
    cosine = nits.Cosine(warmup=10, floor=0.2)
    factors = [cosine.factor(100, progress, []) for progress in (0.0, 0.5, 1.0, 1.2)]
    assert factors == pytest.approx([1.0, 0.6, 0.2, 0.2])


@pytest.mark.parametrize("schedule", [nits.Cosine(10), nits.Constant(10), nits.Plateau(10)])
def test_schedules_warm_up(schedule: nits.Cosine | nits.Constant | nits.Plateau) -> None:
    factors = [schedule.factor(step, 0.0, []) for step in (0, 4, 9, 10, 500)]
    assert factors == pytest.approx([0.1, 0.5, 1.0, 1.0, 1.0])


def test_the_rate_follows_a_cosine_by_default() -> None:
    recipe = nits.Recipe(learning_rate=4e-3)
    assert recipe.rate(1000, 0.5, []) == pytest.approx(2e-3)
    assert recipe.rate(1000, 1.0, []) == pytest.approx(0, abs=1e-12)


def test_the_first_limit_ends_training() -> None:
    assert Budget(max_epochs=3, max_steps=50).steps(per_epoch=10) == 30
    assert Budget(max_epochs=9, max_steps=50).steps(per_epoch=10) == 50
    assert Budget(max_minutes=2.0).steps(per_epoch=10) is None
    both = Budget(max_steps=100, max_minutes=1.0)
    assert both.progress(50, seconds=6, per_epoch=10) == pytest.approx(0.5)
    assert both.progress(50, seconds=45, per_epoch=10) == pytest.approx(0.75)


def test_hide_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"hide must be a share in \[0, 1\), but is 1.0"):
        nits.Recipe(hide=1.0)
