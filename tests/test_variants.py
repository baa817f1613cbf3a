"""The ways to train that only the recipe's search uses: they learn, mask, and count rows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from models import variants
from models.normalized import NormalizedMLP, normalized

import nits
from nits.training.recipe import Budget
from nits.training.rows import Rows
from nits.weights.block_linear import BlockLinear


@pytest.fixture
def data() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    return x


@pytest.mark.parametrize("name", variants.VARIANTS)
def test_every_way_to_train_learns_and_keeps_the_masks(name: str, data: np.ndarray) -> None:
    torch.manual_seed(0)
    model = nits.NITS.mlp([nits.heads.Continuous(-5, 5, (8,), 8)] * 3, hidden=16, blocks=1)
    recipe = nits.Recipe(batch_size=100, schedule=nits.Cosine(1, 1.0))
    with torch.no_grad():
        before = float(model.log_prob(torch.from_numpy(data[800:])).mean())
    history = variants.fit(name, model, (data[:800], data[800:]), recipe, 0.03, 0)
    assert history.final_validation is not None
    assert history.final_validation > max(before, -4.2)  # three Gaussians without links have −4.257
    for layer in model.modules():
        assert not isinstance(layer, BlockLinear) or (layer.weight[layer.mask == 0] == 0).all()


@pytest.mark.parametrize("shape", [(8, 8), (5, 20), (20, 5)])
def test_orthogonalized_matrices_have_singular_values_about_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = u.t() @ variants.orthogonal(matrix) @ v.t()
    assert found.diag().sub(1).abs().max() < 0.4  # five steps of Muon's polynomial come no nearer
    assert (found - found.diag().diag()).abs().max() < 1e-4


def test_rows_outside_the_support_are_left_out(data: np.ndarray) -> None:
    model = nits.NITS.independent([nits.heads.Continuous(-5, 5)] * 3)
    rows = Rows(data.copy())
    assert variants.within(model, rows) is rows
    rows.x[7, 1] = 9.0
    assert len(variants.within(model, rows)) == 999


def test_a_growing_batch_reads_no_row_twice_in_a_pass(data: np.ndarray) -> None:
    run = variants.Growing(
        nits.NITS.independent(3), Rows(data), None, nits.Recipe(batch_size=64), Budget(10), 0
    )
    run.prepare(False, None)
    run.size = 32
    read = torch.cat([run._next_batch().x for _ in range(len(data) // 32)])
    assert len(read.unique(dim=0)) == len(read) == run.read
    for progress, size in ((0.0, 32), (0.5, 64), (1.0, 128)):
        run.advance(progress)
        assert run.size == size


def test_norms_let_no_column_see_those_after_it() -> None:
    torch.manual_seed(0)
    model = normalized(nits.NITS.mlp(4, hidden=24, blocks=2))
    width, size = model.heads[0].inputs, model.heads[0].weights
    features = torch.randn(4 * width, 5)
    for position in range(4):
        changed = features.clone()
        changed[position * width :] += 1.0
        same = model.weights(features) == model.weights(changed)
        assert same[: (position + 1) * size].all()
        assert not same[(position + 1) * size :].any()


def test_norms_divide_by_the_mean_square_of_what_a_unit_may_see() -> None:
    weights = NormalizedMLP([1] * 3, [1] * 3, hidden=4, blocks=1, dropout=0.0)
    assert weights.ranks.tolist() == [1, 1, 2, 2]
    found = weights.norm(torch.tensor([[1.0], [7.0], [5.0], [5.0]]), torch.ones(4, 1))
    expected = torch.tensor(
        [[1 / 5], [7 / 5], [1.0], [1.0]]
    )  # 5 = √((1 + 49) / 2) = √((1 + 49 + 25 + 25) / 4)
    torch.testing.assert_close(found, expected)


def test_a_model_with_norms_is_not_sampled_from() -> None:
    with pytest.raises(NotImplementedError, match="trained and scored, not sampled from"):
        normalized(nits.NITS.mlp(3, hidden=8, blocks=1)).sample(2)
