"""Heads: points, features and initial weights of each kind of column, against distributions."""

import math
import re

import pytest
import torch

from nits import PNN, QuantizedPNN, pnn_parameters
from nits.heads import Atoms, Categorical, Continuous, Given, Integer, Quantized, real_columns
from pnns import every_support, weights

inf, nan = math.inf, math.nan
QUANTIZED = Quantized(-1.0, 2.0, 16)


def laid(theta: torch.Tensor, low: float, high: float) -> Given:
    """What is given of a column: theta comes as (N, P)."""
    low_end, high_end = (torch.full((1,), end, dtype=theta.dtype) for end in (low, high))
    return Given(theta.T, low_end, high_end)


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
def test_a_continuous_column_has_the_density_and_quantiles_of_its_pnn(
    low: float, high: float
) -> None:
    head, theta = Continuous(low, high), weights(30)
    at, d = laid(theta, low, high), head.distribution(theta, low, high)
    assert isinstance(d, PNN)
    x = torch.linspace(-0.9, 1.9, 30).double()
    torch.testing.assert_close(head.log_prob(at, x), d.log_prob(x))
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
    log_prob = QUANTIZED.log_prob(at, k)
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
        assert torch.isnan(head.log_prob(at, x)).tolist() == [True, False]
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


# Categories, integers and atoms.


def test_a_categorical_column_is_a_softmax() -> None:
    theta = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    head, at = Categorical(4), laid(theta, -0.5, 3.5)
    k = torch.arange(50).remainder(4).double()
    expected = torch.distributions.Categorical(logits=theta)
    torch.testing.assert_close(head.log_prob(at, k), expected.log_prob(k.long()))
    cumulative = expected.probs.cumsum(1)[torch.arange(50), k.long()]
    torch.testing.assert_close(head.cdf(at, k + 0.5), cumulative)
    assert torch.equal(head.from_uniform(at, head.to_uniform(at, k)), k)
    assert head.cdf(at, torch.tensor([-0.1, 3.0, 9.0]).double().repeat(17)[:50])[:3].tolist() == [
        0,
        1,
        1,
    ]


def test_a_category_starts_at_its_share() -> None:
    x = torch.tensor([0.0, 0.0, 0.0, 2.0])
    expected = torch.tensor([3.5, 0.5, 1.5, 0.5]) / 6
    torch.testing.assert_close(Categorical(4).initial(x).exp(), expected)


def test_integers_of_a_huge_scale_have_probabilities() -> None:
    """Prices: thousands of values, each with a mass that is right to rounding."""
    head = Integer(shift=2400.0, scale=4000.0)
    theta = weights(1).expand(20001, -1)
    k = torch.arange(-10000, 10001).double()
    log_prob = head.log_prob(laid(theta, head.low, head.high), k)
    edges = [(k[0] - 2400.5) / 4000, (k[-1] - 2399.5) / 4000]
    whole = PNN(weights(1)[0], -inf, inf).log_mass(*edges)
    torch.testing.assert_close(log_prob.logsumexp(0), whole, rtol=0, atol=1e-9)


def test_the_first_and_the_last_integer_reach_to_the_ends() -> None:
    head, theta = Integer(0, 3, shift=0.3, scale=7.0), weights(4)
    k = torch.arange(4).double()
    probs = torch.stack(
        [head.log_prob(laid(theta[[i]], head.low, head.high), k).exp() for i in range(4)]
    )
    torch.testing.assert_close(probs.sum(1), torch.ones(4).double())
    drawn = head.distribution(theta, head.low, head.high).sample(
        (500,), torch.Generator().manual_seed(0)
    )
    assert set(drawn.unique().tolist()) <= {0, 1, 2, 3}
    at_ends = head.distribution(theta, head.low, head.high).icdf(
        torch.tensor([[0.0], [1.0]]).double()
    )
    assert at_ends.tolist() == [[0.0] * 4, [3.0] * 4]


def test_integers_start_at_their_frequencies() -> None:
    generator = torch.Generator().manual_seed(0)
    k = torch.poisson(torch.full((5000,), 5.0).double(), generator)
    head = Integer(0, inf, shift=5.0, scale=3.0)
    found = head.distribution(head.initial(k), head.low, head.high).cdf(torch.arange(15).double())
    frequencies = torch.bincount(k.long(), minlength=15)[:15] / len(k)
    torch.testing.assert_close(found, frequencies.double().cumsum(0), atol=0.05, rtol=0)


def test_atoms_have_mass_and_the_rest_a_density() -> None:
    head = Atoms((0.0, 1.0), -1.0, 2.0)
    theta = torch.cat([torch.tensor([[0.1, 0.2, 0.7]]).double().log(), weights(1)], 1)
    d, rest = head.distribution(theta, -1.0, 2.0), PNN(weights(1), -1.0, 2.0)
    x = torch.tensor([[0.0], [1.0], [0.3]]).double()
    expected = torch.stack(
        [torch.tensor([0.1]), torch.tensor([0.2]), 0.7 * rest.log_prob(x[2]).exp()]
    )
    torch.testing.assert_close(d.log_prob(x).exp(), expected.double())
    below = 0.7 * rest.cdf(x)
    torch.testing.assert_close(d.cdf(x), below + torch.tensor([[0.1], [0.3], [0.1]]).double())
    for value, atom in ((0.0, 0.1), (1.0, 0.2)):
        at = torch.full((1,), value).double()
        start = d.cdf(at) - atom
        for inside in (0.01, 0.5, 0.99):
            assert d.icdf(start + inside * atom).item() == value
        assert d.icdf(start - 0.01).item() < value < d.icdf(start + atom + 0.01).item()


def test_pathwise_gradient_of_a_mean_with_atoms() -> None:
    """Samples move with the weights or jump to an atom, never past one: five standard errors."""
    head = Atoms((0.0, 1.0), -1.0, 2.0, (2,))
    theta = torch.randn(1, head.weights, generator=torch.Generator().manual_seed(3)).double()
    theta.requires_grad_()
    x = head.distribution(theta, -1.0, 2.0).rsample((20_000,), torch.Generator().manual_seed(0))
    parts = x.chunk(100)
    grads = torch.stack(
        [torch.autograd.grad(part.mean(), theta, retain_graph=True)[0] for part in parts]
    )
    (expected,) = torch.autograd.grad(head.distribution(theta, -1.0, 2.0).mean, theta)
    assert expected[0, :3].abs().min() > 0.01  # the logits matter
    error = grads.std(0) / 10
    assert ((grads.mean(0) - expected).abs() < 5 * error + 1e-12).all()


def test_atoms_start_at_their_shares() -> None:
    x = torch.cat([torch.zeros(300), torch.linspace(0.1, 2, 700)]).double()
    head = Atoms((0.0,), 0.0)
    theta = head.initial(x)
    assert theta[:2].exp().tolist() == pytest.approx([300.5 / 1001, 700.5 / 1001])
    assert torch.equal(head.hat_values(x), x[300:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Categorical(1),
            "levels must be an integer of at least 2, but is 1; leave out such a column.",
        ),
        (
            lambda: Integer(0.5, 3),
            "must be integers or infinite, and least below greatest, but are 0.5 and 3;",
        ),
        (lambda: Integer(3, 3), "but are 3 and 3; leave out a column that has only one value."),
        (
            lambda: Integer(scale=0.0),
            "scale must be a positive number, but is 0.0; scale=1.0 changes",
        ),
        (
            lambda: Atoms((0.0, 0.0)),
            "atoms must be one or more different finite numbers, but are [0.0, 0.0]; leave out",
        ),
        (
            lambda: Atoms((inf,), 0.0, 1.0),
            "but are [inf]; leave out repeated values, or take a head without atoms.",
        ),
        (lambda: Atoms(()), "but are []; leave out"),
    ],
)
def test_heads_refuse_what_makes_no_sense(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()  # type: ignore[operator]
