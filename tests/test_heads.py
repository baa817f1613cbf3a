"""Heads: the points, features and initial weights of a kind of column, against the distributions."""

import math
import re

import pytest
import torch

from nits import PNN, QuantizedPNN, pnn, pnn_parameters
from nits.heads import Continuous, Quantized, real_columns
from test_pnn import every_support, weights

inf, nan = math.inf, math.nan
QUANTIZED = Quantized(-1.0, 2.0, 16)


def laid(theta: torch.Tensor, low: float, high: float, hidden: tuple[int, ...] = (16, 16)) -> pnn.Frame:
    """The frame of a column: theta comes as (N, P)."""
    low_end, high_end = (torch.full((1,), end, dtype=theta.dtype) for end in (low, high))
    return pnn.frame(theta.T, low_end, high_end, hidden)


def test_a_head_knows_how_many_weights_it_takes() -> None:
    assert Continuous().weights == Quantized(0.0, 1.0, 8).weights == 320
    assert Continuous(hidden=(4, 5, 6)).weights == pnn_parameters((4, 5, 6))


def test_heads_of_one_kind_differ_only_in_their_support() -> None:
    assert Continuous(0.0, 1.0).kind == Continuous().kind
    assert Continuous(hidden=(8,)).kind != Continuous().kind
    assert Quantized(0.0, 1.0, 8).kind == Quantized(-1.0, 2.0, 8).kind
    assert Quantized(0.0, 1.0, 8).kind != Quantized(0.0, 1.0, 16).kind
    assert Quantized(0.0, 1.0, 8).kind != Continuous(0.0, 1.0).kind


def test_hidden_may_be_a_list() -> None:
    assert Continuous(hidden=[8, 8]) == Continuous(hidden=(8, 8))  # type: ignore[arg-type]


@every_support
def test_a_continuous_column_has_the_density_and_quantiles_of_its_pnn(low: float, high: float) -> None:
    head, theta = Continuous(low, high), weights(30)
    at, d = laid(theta, low, high), head.distribution(theta, low, high)
    assert isinstance(d, PNN)
    x = torch.linspace(-0.9, 1.9, 30).double()
    torch.testing.assert_close(head.log_prob(at, head.points(x, at.low, at.high)), d.log_prob(x))
    u = head.to_uniform(at, x)
    torch.testing.assert_close(u, d.cdf(x))
    torch.testing.assert_close(head.from_uniform(at, u), x, rtol=1e-6, atol=1e-6)


def test_what_a_continuous_column_cannot_be() -> None:
    head, ends = Continuous(-1.0, 2.0), (torch.tensor(-1.0), torch.tensor(2.0))
    x = torch.tensor([-inf, -1.5, -1.0, 0.0, 2.0, 2.5, inf, nan])
    assert head.possible(x, *ends).tolist() == [False, False, True, True, True, False, False, False]
    (point,) = head.points(x, *ends)
    assert point[:7].tolist() == [-1, -1, -1, 0, 2, 2, 2]
    line = Continuous()
    assert not line.possible(torch.tensor([-inf, inf]), torch.tensor(-inf), torch.tensor(inf)).any()


def test_a_quantized_column_has_the_pmf_of_its_pnn() -> None:
    theta, k = weights(16), torch.arange(16).double()
    at, q = laid(theta, -1.0, 2.0), QUANTIZED.distribution(theta, QUANTIZED.low, QUANTIZED.high)
    assert isinstance(q, QuantizedPNN)
    log_prob = QUANTIZED.log_prob(at, QUANTIZED.points(k, at.low, at.high))
    torch.testing.assert_close(log_prob, q.log_prob(k))
    middle = QUANTIZED.to_uniform(at, k)
    torch.testing.assert_close(middle, q.cdf(k) - q.log_prob(k).exp() / 2)
    assert torch.equal(QUANTIZED.from_uniform(at, middle), k)


def test_quantiles_of_a_quantized_column_are_those_of_its_pmf() -> None:
    theta = weights(200)
    u = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = QUANTIZED.distribution(theta, QUANTIZED.low, QUANTIZED.high).icdf(u)
    assert torch.equal(QUANTIZED.from_uniform(laid(theta, -1.0, 2.0), u), expected)


def test_what_a_quantized_column_cannot_be() -> None:
    ends = (torch.tensor(-1.0), torch.tensor(2.0))
    x = torch.tensor([-1.0, 0.0, 0.5, 15.0, 16.0, inf, nan])
    assert QUANTIZED.possible(x, *ends).tolist() == [False, True, False, True, False, False, False]


def test_nan_stays_nan() -> None:
    theta, x = weights(2), torch.tensor([nan, 1.0]).double()
    for head in (Continuous(-1.0, 2.0), QUANTIZED):
        at = laid(theta, -1.0, 2.0)
        assert torch.isnan(head.log_prob(at, head.points(x, at.low, at.high))).tolist() == [True, False]
        assert torch.isnan(head.to_uniform(at, x)).tolist() == [True, False]


def test_features_are_the_value_or_the_middle_of_the_bin() -> None:
    x = torch.tensor([0.0, 3.0, 15.0])
    assert Continuous().features(x).tolist() == [[0.0, 3.0, 15.0]]
    assert QUANTIZED.features(x).tolist() == [[-15 / 16, -9 / 16, 15 / 16]]


def test_initial_weights_follow_the_values() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5000, generator=generator, dtype=torch.float64)
    theta = Continuous().initial(x)
    assert theta.shape == (320,)
    levels = torch.linspace(0.05, 0.95, 19).double()
    torch.testing.assert_close(
        PNN(theta, -inf, inf).cdf(torch.quantile(x, levels)), levels, atol=0.05, rtol=0
    )
    k = torch.poisson(torch.full((5000,), 5.0).double(), generator).clamp_max(15)
    pmf = QUANTIZED.distribution(QUANTIZED.initial(k), QUANTIZED.low, QUANTIZED.high).probs
    frequencies = torch.bincount(k.long(), minlength=16) / len(k)
    torch.testing.assert_close(pmf.cumsum(0), frequencies.double().cumsum(0), atol=0.05, rtol=0)


def test_a_number_of_real_columns() -> None:
    assert real_columns(3) == (Continuous(),) * 3
    assert real_columns([QUANTIZED]) == (QUANTIZED,)


@pytest.mark.parametrize("given", [0, [], ["age"]])
def test_what_is_no_list_of_heads(given: object) -> None:
    with pytest.raises(ValueError, match=re.escape("one head per column, but is")):
        real_columns(given)  # type: ignore[arg-type]
