"""Muon: steps of matrices in which all directions count alike, and AdamW for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import nits
from nits.training.muon import MOMENTUM, SCALE, MuonAdamW, orthogonal
from nits.weights.block_linear import BlockLinear


@pytest.mark.parametrize("shape", [(64, 64), (100, 64), (64, 200)])
def test_singular_values_come_close_to_one(shape: tuple[int, int]) -> None:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, s, vt = torch.linalg.svd(drawn, full_matrices=False)
    x = u @ torch.diag(torch.linspace(0.1, 10.0, len(s))) @ vt
    found = torch.linalg.svdvals(orthogonal(x))
    assert float(found.min()) > 0.6
    assert float(found.max()) < 1.3
    assert torch.allclose(orthogonal(1e6 * x), orthogonal(x), atol=1e-2)
    cosine = (orthogonal(x) * (u @ vt)).sum() / (orthogonal(x).norm() * (u @ vt).norm())
    assert float(cosine) > 0.97


def test_a_step_of_a_wide_matrix_is_that_of_the_formula() -> None:
    start = torch.randn(64, 80, generator=torch.Generator().manual_seed(0))
    grads = [torch.randn(64, 80, generator=torch.Generator().manual_seed(s)) for s in (1, 2)]
    p = nn.Parameter(start.clone())
    optimizer = nits.Muon().build([p], [p], rate=0.01, weight_decay=0.5)
    expected, momentum = start, torch.zeros_like(start)
    for grad in grads:
        p.grad = grad.clone()
        optimizer.step()
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * grad
        step = orthogonal(MOMENTUM * momentum + (1 - MOMENTUM) * grad)
        expected = expected * (1 - 0.01 * 0.5) - 0.01 * SCALE * 80**0.5 * step
    assert torch.allclose(p.detach(), expected, atol=1e-6)


def test_all_else_steps_as_adamw_does() -> None:
    shapes = [(10, 80), (64,), (3, 64, 64)]
    source = torch.Generator().manual_seed(0)
    mine = [nn.Parameter(torch.randn(shape, generator=source)) for shape in shapes]
    others = [nn.Parameter(p.detach().clone()) for p in mine]
    pairs = [
        (mine, nits.Muon().build(mine, mine, rate=0.01, weight_decay=0.1)),
        (others, nits.AdamW().build(others, others, rate=0.01, weight_decay=0.1)),
    ]
    for _ in range(3):
        grads = [torch.randn(shape, generator=source) for shape in shapes]
        for parameters, optimizer in pairs:
            for p, grad in zip(parameters, grads, strict=True):
                p.grad = grad.clone()
            optimizer.step()
    for p, q in zip(mine, others, strict=True):
        assert torch.equal(p, q)


def test_masked_weights_stay_zero() -> None:
    ranks = torch.arange(96)
    layer = BlockLinear(ranks, ranks)
    optimizer = MuonAdamW(list(layer.parameters()), lr=0.1, weight_decay=0.0)
    before = layer.weight.detach().clone()
    for seed in range(3):
        x = torch.randn(96, 50, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        (layer(x) ** 2).sum().backward()
        optimizer.step()
    assert not torch.equal(layer.weight, before)
    assert torch.equal(layer.weight, layer.weight * layer.mask)


def rows() -> Tensor:
    x = torch.randn(600, 3, generator=torch.Generator().manual_seed(0))
    return torch.stack([x[:, 0], x[:, 0] + 0.3 * x[:, 1], x[:, 0] * x[:, 1] + 0.3 * x[:, 2]], 1)


def fitted(place: Path | None = None, resume: Path | None = None, steps: int = 40) -> nits.NITS:
    model = nits.NITS.mlp(3, hidden=64, blocks=1, generator=0)
    recipe = nits.Recipe(batch_size=100, optimizer=nits.Muon(), schedule=nits.Constant(10))
    nits.fit(
        model,
        rows(),
        recipe=recipe,
        max_steps=steps,
        checkpoint=place,
        resume=resume,
        seed=0,
        progress=False,
    )
    return model


def test_a_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    place = tmp_path / "run.part"
    fitted(place, steps=20)
    resumed, whole = fitted(resume=place), fitted()
    for p, q in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(p, q)
