"""Dropout's coins: as many zeros as asked for, none that hang together, and a mean that stays."""

import pytest
import torch

from nits.weights.block_linear import LEVELS, dropout

N = 400_000


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_drops_the_share_and_scales_the_rest(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    y = dropout(torch.ones(N, dtype=dtype), probability, training=True)
    error = (probability * (1 - probability) / N) ** 0.5
    assert abs(float((y == 0).double().mean()) - probability) < 4 * error + 0.5 / LEVELS
    assert y.dtype == dtype
    scales = y[y != 0].unique()
    assert len(scales) == 1
    assert float(scales) == pytest.approx(1 / (1 - probability), rel=2e-4)


def test_coins_of_one_word_are_independent() -> None:
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(N // 4, 4), 0.3, training=True) == 0).double()
    correlations = torch.corrcoef(dropped.t()) - torch.eye(4)
    assert correlations.abs().max() < 4 / (N / 4) ** 0.5
    assert (dropped.mean(0) - 0.3).abs().max() < 4 * (0.21 / (N / 4)) ** 0.5


@pytest.mark.parametrize("shape", [(), (1,), (3, 7), (0, 5)])
def test_any_shape_will_do(shape: tuple[int, ...]) -> None:
    assert dropout(torch.ones(shape), 0.5, training=True).shape == shape


@pytest.mark.parametrize(("probability", "training"), [(0.5, False), (0.0, True)])
def test_leaves_everything_alone_outside_training(probability: float, training: bool) -> None:
    x = torch.randn(100)
    assert torch.equal(dropout(x, probability, training), x)


def test_probability_one_drops_all() -> None:
    assert not dropout(torch.ones(100), 1.0, training=True).any()


def test_gradient_passes_where_the_value_does() -> None:
    x = torch.ones(1000, requires_grad=True)
    y = dropout(x, 0.4, training=True)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())


def test_the_seed_decides() -> None:
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(dropout(torch.ones(64), 0.5, training=True))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_generator_of_ones_own_decides_and_the_global_one_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    drawn = [
        dropout(torch.ones(64), 0.5, True, torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    dropout(torch.ones(64), 1.0, training=True)
    dropout(torch.ones(64), 1e-7, training=True)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_images_keep_their_layout() -> None:
    x = torch.ones(2, 6, 5, 4).contiguous(memory_format=torch.channels_last)
    y = dropout(x, 0.5, training=True)
    assert y.stride() == x.stride()
    assert 0 < float((y == 0).double().mean()) < 1
    every_other = torch.ones(6, 10)[:, ::2]
    assert dropout(every_other, 0.5, training=True).shape == (6, 5)
