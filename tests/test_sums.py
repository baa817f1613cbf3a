"""Sums over integers, exact ones and those over a wide range, against all integers one by one."""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from nits.pnn import sums
from nits.pnn.binned import IntegerPNN
from nits.pnn.integers import Integers
from pnns import every_dtype, logistic, spikes

inf = math.inf


def one_by_one(d: IntegerPNN, reach: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean, variance, mode and entropy from the pmf of −reach … reach."""
    least, greatest = max(d.least, -reach), min(d.greatest, reach)
    k = torch.arange(least, greatest + 1).double()
    log_p = d.log_prob(k.to(d.theta)).double()
    p = log_p.exp()
    mean = (p * k).sum()
    return mean, (p * (k - mean) ** 2).sum(), k[p.argmax()], -torch.special.xlogy(p, p).sum()


def integers(theta: Tensor, hidden: int, **kwargs: float) -> IntegerPNN:
    return IntegerPNN(theta, Integers(**kwargs), (hidden,))


@every_dtype
@pytest.mark.parametrize("scale", [0.2, 3.0, 100.0, 2000.0])
def test_rounded_logistics(scale: float, dtype: torch.dtype) -> None:
    """round(X) of a logistic: exact for narrow ones, by quadrature for wide ones."""
    d = integers(logistic(0.3, 1.0, dtype), 1, scale=scale)
    mean, variance, mode, entropy = one_by_one(d, int(40 * scale) + 50)
    room = 1e-7 if dtype == torch.float64 else 2e-4
    assert d.mean.item() == pytest.approx(mean.item(), abs=room * scale)
    assert d.variance.item() == pytest.approx(variance.item(), rel=10 * room)
    assert d.entropy().item() == pytest.approx(entropy.item(), abs=room)
    assert d.log_prob(d.mode).item() == pytest.approx(d.log_prob(mode.to(d.theta)).item(), abs=room)


def test_a_million_integers() -> None:
    """So wide that rounding adds 1/12 to the variance and nothing else."""
    d = integers(logistic(0.3, 1.0, torch.float64), 1, scale=1e6)
    expected = stats.logistic(0.3e6, 1e6)
    assert d.mean.item() == pytest.approx(expected.mean(), abs=1.0)
    assert d.variance.item() == pytest.approx(expected.var(), rel=1e-6)
    assert d.entropy().item() == pytest.approx(expected.entropy(), abs=1e-6)
    assert d.mode.item() == pytest.approx(0.3e6, abs=100)


@pytest.mark.parametrize("kwargs", [{}, {"least": 0.0}, {"least": -200.0, "greatest": 9000.0}])
def test_one_integer_that_stands_out(kwargs: dict[str, float]) -> None:
    """One price of many thousands has a hundredth of the mass."""
    d = integers(spikes(1e-5), 2, shift=0.0, scale=1000.0, **kwargs)
    mean, variance, mode, entropy = one_by_one(d, 40_000)
    assert d.mode == mode == 300
    assert d.mean.item() == pytest.approx(mean.item(), abs=1e-3)
    assert d.variance.item() == pytest.approx(variance.item(), rel=1e-5)
    assert d.entropy().item() == pytest.approx(entropy.item(), abs=1e-4)


@pytest.mark.parametrize("scale", [2.0, 300.0])
def test_up_to_4096_integers_are_all_summed(scale: float) -> None:
    least, greatest = -round(3 * scale), round(10 * scale)
    limits = {"least": float(least), "greatest": float(greatest)}
    d = integers(spikes(0.01), 2, shift=0.0, scale=scale, **limits)
    assert d.probs.shape == (greatest - least + 1,)
    expected = one_by_one(d, 10_000)
    found = (d.mean, d.variance, d.mode, d.entropy())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


def test_integers_without_end_have_no_list_of_probabilities() -> None:
    d = integers(logistic(0.0, 1.0, torch.float64), 1, least=0.0)
    with pytest.raises(AttributeError, match="finitely many integers, but these are 0 … inf; ask"):
        _ = d.probs
    assert not hasattr(d, "logits")


def test_nothing_has_no_information() -> None:
    log_p = torch.tensor([-inf, 0.0, math.log(0.5)], requires_grad=True)
    found = sums.information(log_p)
    assert found.tolist() == pytest.approx([0, 0, 0.5 * math.log(2)])
    found.sum().backward()
    assert log_p.grad is not None
    assert log_p.grad.isfinite().all()


def test_the_mean_of_integers_has_gradients() -> None:
    """d/db of E round(scale · X) is scale · Σ ν(edges) / scale, one where the pmf is wide."""
    theta = logistic(0.3, 1.0, torch.float64).requires_grad_()
    (grad,) = torch.autograd.grad(integers(theta, 1, scale=50.0).mean, theta)
    torch.testing.assert_close(grad[1], torch.tensor(50.0).double(), rtol=1e-5, atol=0)
