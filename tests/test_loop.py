"""The training loop: what it averages, clips, skips and leaves as it was."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import nits
from two_columns import QUICK, rows, small, weights


def test_returns_the_average_and_leaves_no_trace() -> None:
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
    from nits.training import loop

    calls = []

    def broken(model: nits.NITS, batch: object, hide: float) -> Tensor:
        calls.append(1)
        value = weights_sum(model)
        return value * (math.nan if len(calls) % 3 == 0 or len(calls) > 30 else 1.0)

    def weights_sum(model: nits.NITS) -> Tensor:
        return torch.stack([p.square().sum() for p in model.parameters()]).sum() * 1e-6

    monkeypatch.setattr(loop, "log_likelihood", broken)
    model = small()
    history = nits.fit(model, rows(), max_steps=30, recipe=QUICK, progress=False, validation=0.0)
    assert history.skipped == 10
    assert bool(torch.isfinite(weights(model)).all())
    with pytest.raises(
        RuntimeError,
        match=r"50 steps in a row had a loss or gradient that is not finite; try a lower",
    ):
        nits.fit(small(), rows(), max_steps=300, recipe=QUICK, progress=False, validation=0.0)
