"""The torch.distributions faces: shapes, edges of the support, samples, and the quantized pmf."""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.distributions import Distribution

from nits import PNN, QuantizedPNN
from pnns import SUPPORTS, every_dtype, every_hidden, every_support, weights

inf, nan = math.inf, math.nan


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def grid(*shape: int) -> Tensor:
    return torch.linspace(-0.9, 1.9, math.prod(shape), dtype=torch.float64).reshape(shape)


# Shapes.


@every_hidden
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("sample", [(), (4,), (4, 5)], ids=str)
def test_points_have_sample_shape_then_batch_shape(
    sample: tuple[int, ...], batch: tuple[int, ...], hidden: tuple[int, ...]
) -> None:
    theta = weights(math.prod(batch), hidden=hidden).reshape(*batch, -1)
    d = PNN(theta, -1.0, 2.0, hidden)
    assert (d.batch_shape, d.event_shape) == (batch, ())
    x = grid(*sample, *batch)
    for value in (
        d.log_prob(x),
        d.cdf(x),
        d.survival(x),
        d.icdf((x + 1) / 3),
        d.log_mass(x - 0.1, x),
    ):
        assert value.shape == (*sample, *batch)
    assert d.sample(sample).shape == (*sample, *batch)


@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_moments_have_the_batch_shape(batch: tuple[int, ...]) -> None:
    d = PNN(weights(math.prod(batch)).reshape(*batch, -1), -1.0, 2.0)
    assert d.mean.shape == d.variance.shape == batch


def test_each_point_meets_its_own_pnn() -> None:
    theta, x = weights(6).reshape(2, 3, -1), grid(4, 2, 3)
    together = PNN(theta, -1.0, 2.0).log_prob(x)
    for i in range(2):
        for j in range(3):
            alone = PNN(theta[i, j], -1.0, 2.0).log_prob(x[:, i, j])
            torch.testing.assert_close(together[:, i, j], alone, rtol=1e-13, atol=1e-13)


def test_one_point_for_all_pnns_and_one_pnn_for_all_points() -> None:
    theta, x = weights(5), grid(1)[0]
    expected = torch.stack([PNN(row, -1.0, 2.0).log_prob(x) for row in theta])
    torch.testing.assert_close(PNN(theta, -1.0, 2.0).log_prob(x), expected, rtol=1e-13, atol=1e-13)
    assert PNN(theta[0], -1.0, 2.0).log_prob(grid(7, 2)).shape == (7, 2)


def test_each_pnn_has_its_own_support() -> None:
    theta = weights(4)
    low, high = (torch.tensor(ends).double() for ends in zip(*SUPPORTS.values(), strict=True))
    x = grid(3, 4)
    together = PNN(theta, low, high).log_prob(x)
    for i, support in enumerate(SUPPORTS.values()):
        alone = PNN(theta[i], *support).log_prob(x[:, i])
        torch.testing.assert_close(together[:, i], alone, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("quantized", [False, True])
def test_expand_repeats_the_distribution(quantized: bool) -> None:
    theta = weights(3)
    d: Distribution = QuantizedPNN(theta, -1.0, 2.0, 8) if quantized else PNN(theta, -1.0, 2.0)
    wide = d.expand((2, 3))
    assert type(wide) is type(d)
    assert wide.batch_shape == (2, 3)
    x = torch.ones(2, 3).double()
    torch.testing.assert_close(wide.log_prob(x), d.log_prob(x), rtol=0, atol=0)


# The edges of the support, and what is no number.


@every_dtype
def test_outside_the_support(dtype: torch.dtype) -> None:
    d = PNN(weights(1)[0].to(dtype), -1.0, 2.0)
    x = torch.tensor([-inf, -1.5, 2.5, inf], dtype=dtype)
    assert d.log_prob(x).tolist() == [-inf] * 4
    assert d.cdf(x).tolist() == pytest.approx([0, 0, 1, 1], abs=1e-6)
    assert d.survival(x).tolist() == pytest.approx([1, 1, 0, 0], abs=1e-6)
    assert d.log_mass(x[:2], x[1:3]).tolist() == pytest.approx([-inf, 0], abs=1e-6)


def test_both_ends_belong_to_the_support() -> None:
    d = PNN(weights(4), -1.0, 2.0)
    assert torch.isfinite(d.log_prob(d.low)).all()
    assert torch.isfinite(d.log_prob(d.high)).all()
    assert d.cdf(d.low).tolist() == [0.0] * 4
    assert d.survival(d.high).tolist() == [0.0] * 4


@every_support
def test_infinity_has_no_density(low: float, high: float) -> None:
    d = PNN(weights(1)[0], low, high)
    x = torch.tensor([-inf, inf]).double()
    assert d.log_prob(x).tolist() == [-inf, -inf]
    assert d.cdf(x).tolist() == pytest.approx([0, 1], abs=1e-14)


@every_support
def test_nan_in_gives_nan_out(low: float, high: float) -> None:
    d, x = PNN(weights(2), low, high), torch.tensor([nan, 0.5]).double()
    y = torch.ones(2).double()
    for value in (
        d.log_prob(x),
        d.cdf(x),
        d.survival(x),
        d.icdf(x),
        d.log_mass(x, y),
        d.log_mass(y - 1, x),
    ):
        assert torch.isnan(value).tolist() == [True, False]


def test_nan_weights_give_nan() -> None:
    theta = weights(2)
    theta[0, 5] = nan
    d, x = PNN(theta, -1.0, 2.0), grid(2)
    for value in (d.log_prob(x), d.cdf(x), d.log_mass(x - 0.05, x)):
        assert torch.isnan(value).tolist() == [True, False]


def test_an_interval_the_wrong_way_round_is_empty() -> None:
    d = PNN(weights(1)[0], -1.0, 2.0)
    assert d.log_mass(grid(2)[1], grid(2)[0]).item() == -inf


def test_support_is_the_interval() -> None:
    d = PNN(weights(2), -1.0, 2.0)
    assert d.support.check(torch.tensor([-1.0, 2.5]).double()).tolist() == [True, False]


# Samples.


def test_a_generator_makes_samples_reproducible() -> None:
    d, q = PNN(weights(3), -1.0, inf), QuantizedPNN(weights(3), -1.0, 2.0, 8)
    assert torch.equal(d.sample((5,), seeded()), d.sample((5,), seeded()))
    assert not torch.equal(d.sample((5,), seeded(0)), d.sample((5,), seeded(1)))
    assert torch.equal(q.sample((50,), seeded()), q.sample((50,), seeded()))


def test_samples_carry_gradients_only_if_asked_to() -> None:
    d = PNN(weights(3).requires_grad_(), -1.0, 2.0)
    assert d.rsample((5,)).requires_grad
    assert not d.sample((5,)).requires_grad


def test_samples_without_gradients_take_none_from_what_follows() -> None:
    theta = weights(3).requires_grad_()
    d = PNN(theta, -1.0, 2.0)
    d.sample((2,))
    (grad,) = torch.autograd.grad(d.log_prob(torch.zeros(3).double()).sum(), theta)
    assert (grad != 0).any(1).all()


def test_pathwise_gradient_of_the_mean() -> None:
    # d/dθ of E X by samples against quadrature; the error of a mean of 20,000 is below 5 standard
    # errors.
    hidden = (2,)
    theta = weights(1, hidden=hidden, seed=3)[0].requires_grad_()
    x = PNN(theta, -1.0, 2.0, hidden).rsample((20_000,), seeded())
    grads = torch.stack(
        [torch.autograd.grad(part.mean(), theta, retain_graph=True)[0] for part in x.chunk(100)]
    )
    (expected,) = torch.autograd.grad(PNN(theta, -1.0, 2.0, hidden).mean, theta)
    error = grads.std(0) / 10
    assert ((grads.mean(0) - expected).abs() < 5 * error + 1e-12).all()


# The pmf.


def pmf(n: int = 20, bins: int = 16, scale: float = 1.0) -> QuantizedPNN:
    return QuantizedPNN(weights(n, scale), -1.0, 2.0, bins)


def test_probabilities_are_those_of_the_bins() -> None:
    q = pmf()
    assert q.probs.shape == (20, 16)
    edges = torch.linspace(-1, 2, 17, dtype=torch.float64)[:, None].expand(17, 20)
    torch.testing.assert_close(q.probs.T, q.base.cdf(edges).diff(dim=0), atol=1e-12, rtol=0)
    torch.testing.assert_close(q.logits.exp(), q.probs, atol=0, rtol=0)
    torch.testing.assert_close(q.probs.sum(-1), torch.ones(20).double(), atol=1e-12, rtol=0)


def test_cdf_is_the_running_sum() -> None:
    q = pmf()
    k = torch.arange(16)[:, None].expand(16, 20)
    torch.testing.assert_close(q.cdf(k), q.probs.T.cumsum(0), atol=1e-12, rtol=0)
    below, above = (q.cdf(torch.full((20,), k)) for k in (-1, 99))
    assert (below == 0).all()
    torch.testing.assert_close(above, torch.ones(20).double(), atol=1e-14, rtol=0)


def test_impossible_values_have_probability_zero() -> None:
    k = torch.tensor([-1.0, 0.5, 16.0, inf, -inf, 3.0]).double()
    assert (pmf(1).log_prob(k.unsqueeze(-1)).squeeze(-1) == -inf).tolist() == [True] * 5 + [False]


def test_nan_is_not_an_integer() -> None:
    q, x = pmf(2), torch.tensor([nan, 3.0]).double()
    for value in (q.log_prob(x), q.cdf(x), q.icdf(x / 16)):
        assert torch.isnan(value).tolist() == [True, False]


def test_integer_tensors_are_welcome() -> None:
    q, k = pmf(3), torch.tensor([0, 7, 15])
    torch.testing.assert_close(q.log_prob(k), q.log_prob(k.double()), atol=0, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_icdf_is_the_least_value_that_reaches_the_probability(scale: float) -> None:
    q = pmf(50, scale=scale)
    u = torch.rand(40, 50, generator=seeded(), dtype=torch.float64)
    k = q.icdf(u)
    assert (q.cdf(k) >= u).all()
    assert ((q.cdf(k - 1) < u) | (k == 0)).all()


def test_icdf_at_the_steps_of_the_cdf() -> None:
    q = pmf(5)
    k = torch.arange(15)[:, None].expand(15, 5).double()
    u = q.cdf(k)
    assert torch.equal(q.icdf(u), k)
    assert torch.equal(q.icdf(torch.nextafter(u, torch.ones(()).double())), k + 1)


def test_ends_of_icdf() -> None:
    q = pmf(5)
    assert q.icdf(torch.zeros(5).double()).tolist() == [0.0] * 5
    assert (q.cdf(q.icdf(torch.ones(5).double())) >= 1 - 1e-15).all()


def test_samples_have_the_probabilities() -> None:
    # χ² at a false-alarm rate of 1e-6, on bins expected at least five times.
    q, n = QuantizedPNN(weights(1)[0], -1.0, 2.0, 16), 8_000
    draws = q.sample((n,), seeded())
    assert draws.dtype == torch.float64
    counts = torch.bincount(draws.long(), minlength=16)
    expected = n * q.probs
    often = expected >= 5
    assert often.sum() >= 8
    statistic = float(((counts - expected) ** 2 / expected)[often].sum())
    assert statistic < stats.chi2.isf(1e-6, int(often.sum()) - 1)


def test_mean_and_variance_of_the_pmf() -> None:
    q, k = pmf(), torch.arange(16).double()
    mean = q.probs @ k
    torch.testing.assert_close(q.mean, mean, atol=1e-12, rtol=0)
    torch.testing.assert_close(q.variance, q.probs @ k**2 - mean**2, atol=1e-10, rtol=0)


def test_support_of_the_pmf() -> None:
    assert pmf().support.check(torch.tensor([-1, 0, 15, 16])).tolist() == [False, True, True, False]
