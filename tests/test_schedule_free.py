"""Schedule-free AdamW: the published optimizer, step by step; its averages; a run that resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
import schedulefree
import torch
from torch import nn

import nits
from nits.training.schedule_free import TOWARDS_AVERAGE, ScheduleFreeAdamW


def made(
    dtype: torch.dtype = torch.float64, decay: float = 0.0
) -> tuple[nn.Linear, nn.Linear, ScheduleFreeAdamW]:
    torch.manual_seed(0)
    model, average = nn.Linear(3, 2, dtype=dtype), nn.Linear(3, 2, dtype=dtype)
    average.load_state_dict(model.state_dict())
    pairs = list(model.parameters()), list(average.parameters())
    return model, average, ScheduleFreeAdamW(*pairs, lr=0.05, weight_decay=decay)


def loss(model: nn.Linear, step: int) -> torch.Tensor:
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(step), dtype=model.weight.dtype)
    target = x @ torch.tensor([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]], dtype=x.dtype) + 1
    error: torch.Tensor = model(x) - target
    return error.square().mean()


def train(model: nn.Linear, optimizer: ScheduleFreeAdamW, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss(model, step).backward()
        optimizer.step()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_is_the_published_optimizer(decay: float) -> None:
    model, average, optimizer = made(decay=decay)
    other, _, _ = made()
    reference = schedulefree.AdamWScheduleFree(other.parameters(), lr=0.05, weight_decay=decay)
    reference.train()
    for step in range(50):
        for group in (*optimizer.param_groups, *reference.param_groups):
            group["lr"] = 0.05 * min(1.0, (step + 1) / 10)
        train(model, optimizer, range(step, step + 1))
        reference.zero_grad()
        loss(other, step).backward()
        reference.step()
    for got, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    reference.eval()
    for got, expected in zip(average.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def test_gradients_are_taken_between_the_steps_and_their_average() -> None:
    model, average, optimizer = made()
    train(model, optimizer, range(7))
    for y, x in zip(model.parameters(), average.parameters(), strict=True):
        between = (1 - TOWARDS_AVERAGE) * optimizer.state[y]["z"] + TOWARDS_AVERAGE * x
        torch.testing.assert_close(y.detach(), between.detach())


def test_at_a_constant_rate_the_average_is_the_mean() -> None:
    model, average, optimizer = made()
    seen = []
    for step in range(9):
        train(model, optimizer, range(step, step + 1))
        seen.append([optimizer.state[p]["z"].clone() for p in model.parameters()])
    for x, *zs in zip(average.parameters(), *seen, strict=True):
        torch.testing.assert_close(x.detach(), torch.stack(zs).mean(0))


def test_finds_the_line() -> None:
    model, average, optimizer = made(torch.float32)
    train(model, optimizer, range(1500))
    assert float(loss(average, 9999).detach()) < 1e-3


def test_weights_without_a_gradient_stay() -> None:
    model, _, optimizer = made()
    before = model.bias.detach().clone()
    for _ in range(3):
        model.zero_grad()
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
    assert torch.equal(model.bias.detach(), before)


def rows() -> torch.Tensor:
    x = torch.randn(600, 3, generator=torch.Generator().manual_seed(1))
    return torch.cat([x[:, :1], x[:, :1] + 0.5 * x[:, 1:]], 1)


def small() -> nits.NITS:
    torch.manual_seed(0)
    return nits.NITS.mlp(
        [nits.heads.Continuous(-9, 9, (4,), 4)] * 3, hidden=16, blocks=1, dropout=0.1
    )


RECIPE = nits.Recipe(optimizer=nits.ScheduleFree(), schedule=nits.Constant(10), batch_size=50)


def test_fit_learns_with_it() -> None:
    model, other = small(), small()
    history = nits.fit(model, rows(), recipe=RECIPE, max_steps=300, progress=False)
    assert history.validation[-1] > history.validation[0]
    nits.fit(other, rows(), recipe=nits.Recipe(batch_size=50), max_steps=300, progress=False)
    ours, theirs = (float(m.log_prob(rows()).mean().detach()) for m in (model, other))
    assert ours == pytest.approx(theirs, abs=0.15)
    assert ours != theirs


def test_a_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    place = tmp_path / "half.safetensors"
    whole, half = small(), small()
    nits.fit(whole, rows(), recipe=RECIPE, max_steps=40, progress=False)
    nits.fit(half, rows(), recipe=RECIPE, max_steps=20, checkpoint=place, progress=False)
    half = small()
    nits.fit(half, rows(), recipe=RECIPE, max_steps=40, resume=place, progress=False)
    for got, expected in zip(half.parameters(), whole.parameters(), strict=True):
        assert torch.equal(got, expected)
