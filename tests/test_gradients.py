"""Gradients of a batch in parts: the sum of theirs, whatever is drawn at random."""

from typing import Any

import pytest
import torch

import nits
from nits.training import gradients
from nits.training.exchange import Gradient
from nits.training.loop import Loop
from nits.training.recipe import Budget
from nits.training.rows import Rows


def loop(parts: int, weight: torch.Tensor | None = None, batch_size: int = 50) -> Loop:
    rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)).cumsum(1)
    rows[::7, 1] = torch.nan
    heads: list[Any] = [nits.heads.Continuous(optional=True)] * 3
    model = nits.NITS.mlp(heads, hidden=16, blocks=1, dropout=0.3, generator=0)
    recipe = nits.Recipe(batch_size=batch_size, hide=0.2, parts=parts)
    found = Loop(model, Rows(rows, weight=weight), None, recipe, Budget(None, 9), 0)
    found.prepare(None)
    found.model.train()
    found.begun = 0.0
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_add_up_to_the_batch(parts: int, weighted: bool) -> None:
    weight = torch.rand(200, generator=torch.Generator().manual_seed(1)) if weighted else None
    whole, cut = loop(1, weight), loop(parts, weight)
    values, grads = [], []
    for one in (whole, cut):
        one.model.reseed(one.step_seed())
        values.append(one.gradient())
        grads.append([p.grad for p in one.parameters if p.numel()])
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert any(bool(g.abs().max() > 0) for g in grads[0] if g is not None)


def test_parts_cover_a_batch_and_are_no_more_than_its_rows() -> None:
    for parts, batch in ((3, 50), (7, 5), (1, 4)):
        found = gradients.own_parts(loop(parts, batch_size=batch))
        assert [k for some in found for k in range(batch)[some]] == list(range(batch))
        assert len(found) == min(parts, batch)


def test_a_batch_in_parts_is_trained_on() -> None:
    rows = torch.randn(300, 2, generator=torch.Generator().manual_seed(0)).cumsum(1)
    model = nits.NITS.mlp(2, hidden=8, blocks=1, generator=0)
    recipe = nits.Recipe(batch_size=100, parts=4)
    history = nits.fit(model, rows, recipe=recipe, max_steps=150, progress=False)
    assert history.start is not None
    assert history.validation[-1] > history.start + 0.05
    with torch.no_grad():  # of rows that are a batch of their own again
        assert torch.isfinite(model.log_prob(rows[:3])).all()


def test_parts_are_counted() -> None:
    with pytest.raises(ValueError, match="parts must be a positive integer, but is 0"):
        nits.Recipe(parts=0)


def test_what_is_exchanged_is_all_that_masks_let_through() -> None:
    one = loop(1)
    one.gradient()
    before = [None if p.grad is None else p.grad.clone() for p in one.parameters]
    found = Gradient(one.model, 2)
    found.collect(torch.tensor([3.0, 4.0]))
    assert found.count == len(found.flat) - 2 < sum(p.numel() for p in one.parameters)
    nonzero = sum(int((g != 0).sum()) for g in before if g is not None)
    assert nonzero == int((found.flat[:-2] != 0).sum()) > 0
    assert found.flat[-2:].tolist() == [3.0, 4.0]
    for p in one.parameters[::2]:
        p.grad = None
    found.put_back(2.0)
    for p, g in zip(one.parameters, before, strict=True):
        assert p.grad is not None
        torch.testing.assert_close(p.grad, torch.zeros_like(p) if g is None else g / 2)
