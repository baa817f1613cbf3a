"""Whole rows as a torch distribution: shapes, and agreement with the density it is made of."""

import re

import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import NITS
from nits.heads import Atoms, Categorical, Continuous, Quantized
from nits.model.distribution import JointDistribution
from registry import SMALL, mlp, randomized, seeded

REAL = [Continuous(-1.0, 2.0, SMALL), Continuous(hidden=SMALL), Atoms((0.0,), 0.0, hidden=SMALL)]


@pytest.fixture(scope="module")
def plain() -> NITS:
    return randomized(lambda: mlp(REAL), 1)


@pytest.fixture(scope="module")
def conditional() -> NITS:
    return randomized(lambda: mlp(REAL, context=2), 2)


def context(*shape: int) -> Tensor:
    return torch.randn(*shape, 2, generator=seeded(3))


def test_without_context_there_is_one_distribution(plain: NITS) -> None:
    d = JointDistribution(plain)
    assert isinstance(d, Distribution)
    assert (d.batch_shape, d.event_shape) == ((), (3,))
    x = d.sample((4, 5), 0)
    assert x.shape == (4, 5, 3)
    assert torch.equal(x, plain.sample(20, generator=0).reshape(4, 5, 3))
    assert torch.equal(d.log_prob(x), plain.log_prob(x.reshape(20, 3)).reshape(4, 5))
    assert d.sample().shape == (3,)
    assert d.log_prob(d.sample()).shape == ()
    assert repr(d) == "JointDistribution()"


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("sample", [(), (5,), (5, 2)], ids=str)
def test_the_batch_is_that_of_the_context(
    conditional: NITS, batch: tuple[int, ...], sample: tuple[int, ...]
) -> None:
    given = context(*batch)
    d = JointDistribution(conditional, given)
    assert (d.batch_shape, d.event_shape) == (batch, (3,))
    x = d.sample(sample, seeded(0))
    assert x.shape == (*sample, *batch, 3)
    assert torch.equal(x, d.sample(sample, seeded(0)))
    rows, of_each = x.reshape(-1, 3), given.expand(*sample, *batch, 2).reshape(-1, 2)
    expected = conditional.log_prob(rows, of_each).reshape((*sample, *batch))
    assert torch.equal(d.log_prob(x), expected)


def test_each_row_is_drawn_from_its_own_context(conditional: NITS) -> None:
    d = JointDistribution(conditional, context(2))
    x = d.sample((3,), 1)
    u = conditional.to_uniform(x.reshape(6, 3), context(2).repeat(3, 1))
    again = conditional.to_uniform(
        conditional.sample(6, context(2).repeat(3, 1), 1), context(2).repeat(3, 1)
    )
    torch.testing.assert_close(u, again)


def test_one_row_meets_every_context(conditional: NITS) -> None:
    d, x = JointDistribution(conditional, context(4)), torch.tensor([0.1, -0.3, 0.5])
    found = d.log_prob(x)
    assert found.shape == (4,)
    assert found.unique().numel() == 4
    alone = [JointDistribution(conditional, row).log_prob(x) for row in context(4)]
    torch.testing.assert_close(found, torch.stack(alone))


def test_expanding_repeats_the_context(plain: NITS, conditional: NITS) -> None:
    wide = JointDistribution(plain).expand((2, 3))
    assert (wide.batch_shape, wide.event_shape) == ((2, 3), (3,))
    assert wide.sample((4,)).shape == (4, 2, 3, 3)
    assert wide.log_prob(torch.zeros(3)).shape == (2, 3)
    d = JointDistribution(conditional, context(4))
    wide = d.expand((2, 4))
    x = wide.sample((), 0)
    assert x.shape == (2, 4, 3)
    torch.testing.assert_close(wide.log_prob(x), d.log_prob(x))


def test_samples_carry_gradients_if_asked_to(conditional: NITS) -> None:
    given = context(4).requires_grad_()
    d = JointDistribution(conditional, given)
    assert d.has_rsample
    assert not d.sample((2,)).requires_grad
    x = d.rsample((2,), 0)
    torch.testing.assert_close(x.detach(), d.sample((2,), 0), rtol=1e-4, atol=1e-5)
    (gradient,) = torch.autograd.grad(x.sum(), given)
    assert (gradient != 0).any(1).all()


def test_discrete_columns_have_no_gradients() -> None:
    d = JointDistribution(randomized(lambda: mlp([*REAL, Categorical(3)]), 4))
    assert not d.has_rsample
    with pytest.raises(
        NotImplementedError,
        match="rsample needs continuous columns",
    ):
        d.rsample()


def test_the_support_is_that_of_every_column() -> None:
    heads = [*REAL, Quantized(0.0, 1.0, 4, SMALL)]
    d = JointDistribution(randomized(lambda: mlp(heads), 5))
    assert d.support.event_dim == 1
    assert d.support.check(d.sample((50,))).all()
    x = torch.tensor(
        [[0.0, 9.0, 0.0, 3.0], [3.0, 9.0, 0.0, 3.0], [0.0, 9.0, -1.0, 3.0], [0.0, 9.0, 0.0, 1.5]]
    )
    assert d.support.check(x).tolist() == [True, False, False, False]
    assert torch.isneginf(d.log_prob(x)).tolist() == [False, True, True, True]


def test_no_samples_are_an_empty_tensor(plain: NITS) -> None:
    assert JointDistribution(plain).sample((0, 2)).shape == (0, 2, 3)


@pytest.mark.parametrize("value", [torch.zeros(4, 2), torch.zeros(()), [0.0, 0.0, 0.0]])
def test_what_is_no_row(plain: NITS, value: Tensor) -> None:
    message = "x must be a tensor of shape (…, 3), one column per head, but is"
    with pytest.raises(ValueError, match=re.escape(message)):
        JointDistribution(plain).log_prob(value)
