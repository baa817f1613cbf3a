"""The training loop: what it averages, clips, skips and leaves as it was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import nits
from two_columns import QUICK, rows, small, weights


class Steps:
    """What each step of an optimizer took and gave."""

    def __init__(self) -> None:
        self.norms: list[float] = []  # of the gradient that it was handed
        self.weights: list[Tensor] = []  # after it

    def before(self, optimizer: Optimizer, *_: Any) -> None:
        grads = [p.grad.flatten() for p in _parameters(optimizer) if p.grad is not None]
        self.norms.append(float(torch.cat(grads).norm()))

    def after(self, optimizer: Optimizer, *_: Any) -> None:
        self.weights.append(torch.cat([p.detach().flatten() for p in _parameters(optimizer)]))


def _matrices_first(model: torch.nn.Module) -> Tensor:
    """The weights of a model in the order in which optimizers hold them."""
    parts = sorted(model.parameters(), key=lambda p: p.dim() < 2)
    return torch.cat([p.detach().flatten() for p in parts])


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


@pytest.fixture
def steps() -> Iterator[Steps]:
    """The steps that optimizers take while a test runs."""
    seen = Steps()
    hooks = (
        register_optimizer_step_pre_hook(seen.before),
        register_optimizer_step_post_hook(seen.after),
    )
    yield seen
    for hook in hooks:
        hook.remove()


def test_returns_the_average_of_the_weights(steps: Steps) -> None:
    model = small()
    average = _matrices_first(model)
    recipe = replace(QUICK, average=0.5, start_from_data=False)
    nits.fit(model, rows(), validation=0.0, max_steps=25, recipe=recipe, progress=False)
    for k, after in enumerate(steps.weights, 1):
        decay = min(0.5, k / (k + 10))  # 0.5 from the tenth step on
        average = decay * average + (1 - decay) * after
    assert len(steps.weights) == 25
    torch.testing.assert_close(_matrices_first(model), average)
    assert (_matrices_first(model) - steps.weights[-1]).abs().max() > 1e-4


def test_without_an_average_returns_the_last_weights(steps: Steps) -> None:
    model, recipe = small(), replace(QUICK, average=0.0)
    nits.fit(model, rows(), validation=0.0, max_steps=5, recipe=recipe, progress=False)
    torch.testing.assert_close(_matrices_first(model), steps.weights[-1])


def test_gradients_are_clipped_to_the_recipes_norm(steps: Steps) -> None:
    clip = 0.05
    for recipe in (replace(QUICK, clip=1e9), replace(QUICK, clip=clip)):
        nits.fit(small(), rows(), max_steps=10, recipe=recipe, progress=False)
    free, clipped = steps.norms[:10], steps.norms[10:]
    assert free[0] > 2 * clip
    assert clipped[0] == pytest.approx(clip, rel=1e-4)
    assert max(clipped) <= clip * (1 + 1e-4)


def test_leaves_no_trace() -> None:
    state = torch.random.get_rng_state()
    model = small(dropout=0.2)
    after_construction = torch.random.get_rng_state()
    nits.fit(model, rows(), max_steps=20, recipe=QUICK, progress=False)
    assert not model.training
    assert torch.equal(torch.random.get_rng_state(), after_construction)
    torch.random.set_rng_state(state)


def test_non_finite_steps_are_skipped_and_many_stop_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    forward = nits.NITS.forward

    def broken(model: nits.NITS, x: Tensor, *rest: Tensor | None) -> Tensor:
        calls.append(1)
        return forward(model, x, *rest) * (
            math.nan if len(calls) % 3 == 0 or len(calls) > 30 else 1.0
        )

    monkeypatch.setattr(nits.NITS, "forward", broken)
    model = small()
    history = nits.fit(model, rows(), max_steps=30, recipe=QUICK, progress=False, validation=0.0)
    assert history.skipped == 10
    assert bool(torch.isfinite(weights(model)).all())
    with pytest.raises(
        RuntimeError,
        match=r"50 steps in a row had a loss or gradient that is not finite; try a lower",
    ):
        nits.fit(small(), rows(), max_steps=300, recipe=QUICK, progress=False, validation=0.0)
