"""Inflated: integers with probabilities of their own, inside and outside the range of the rest."""

import json
import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from nits.heads import (
    Atoms,
    Cells,
    Continuous,
    CurvedEdges,
    Cycle,
    Given,
    Head,
    Inflated,
    Integer,
    ListedEdges,
)
from nits.heads.description import described, heads_of
from nits.model.reading import Reading
from nits.pnn.curves import Line, Log
from pnns import every_dtype

inf, nan = math.inf, math.nan
SMALL = (6, 5)
FEW = Cells(ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0)), SMALL)
MANY = Cells(CurvedEdges(3000, Log(-1.0, 1, 5.0, 1.4)), SMALL, knots=3)
HEADS = {
    "inside": Inflated(FEW, (0, 3)),
    "outside": Inflated(FEW, (-1,)),
    "on both sides, with gaps": Inflated(FEW, (-7, -1, 2, 6, 9)),
    "every value": Inflated(FEW, (0, 1, 2, 3)),
    "many": Inflated(MANY, (-1, 0, 2999)),
    "64 values": Inflated(MANY, (-1, *range(0, 3000, 48))),
    "integers": Inflated(Integer(hidden=SMALL, scale=3.0), (-2, 5)),
    "integers from 0": Inflated(Integer(0, hidden=SMALL, scale=3.0), (-1, 0)),
}
every_head = pytest.mark.parametrize("head", list(HEADS.values()), ids=list(HEADS))


def theta_of(head: Head, n: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(n, head.weights, generator=generator, dtype=torch.float64)


def laid(head: Head, theta: Tensor) -> Given:
    return Given(theta.T, theta.new_tensor([head.low]), theta.new_tensor([head.high]))


def known(head: Inflated) -> Tensor:
    """All values, or those near zero."""
    rest = torch.arange(max(head.rest.least, -3000), min(head.rest.greatest, 3000) + 1)
    found: Tensor = torch.cat([rest.double(), torch.tensor(head.values).double()]).unique()
    return found


def naive(head: Inflated, theta: Tensor) -> Tensor:
    """P(k) by equation (27) word by word, shape (values, N)."""
    logits, rest = theta.split([len(head.values) + 1, head.rest.weights], -1)
    share, k = logits.softmax(-1), known(head).to(theta.dtype).unsqueeze(1)
    d = head.rest.distribution(rest, head.low, head.high)
    found: Tensor = share[:, -1] * d.log_prob(k.expand(-1, len(theta))).exp()
    for i, value in enumerate(head.values):
        found = found + share[:, i] * (k == value)
    return found


@every_head
def test_probabilities_are_the_mixture(head: Inflated) -> None:
    theta = theta_of(head, 4)
    d: Any = head.distribution(theta, head.low, head.high)
    k = known(head).unsqueeze(1).expand(-1, 4)
    expected = naive(head, theta)
    torch.testing.assert_close(d.log_prob(k).exp(), expected, rtol=1e-9, atol=1e-300)
    torch.testing.assert_close(expected.sum(0), torch.ones(4).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(d.cdf(k), expected.cumsum(0), rtol=0, atol=1e-6)
    torch.testing.assert_close(d.mean, (expected * k).sum(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(d.mode, k[:, 0][expected.argmax(0)])
    surprise = -torch.special.xlogy(expected, expected).sum(0)
    torch.testing.assert_close(d.entropy(), surprise, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1, 30])
@every_dtype
@every_head
def test_quantiles_are_the_least_value_that_reaches_the_probability(
    head: Inflated, dtype: torch.dtype, scale: float
) -> None:
    """On a finite range to the last digit, by the head's own distribution function."""
    n = 2000
    theta = theta_of(head, 20, scale).repeat(n // 20, 1).to(dtype)
    given = laid(head, theta)
    u = torch.rand(n, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    room = 0.0 if math.isfinite(head.high) else 1e-6
    with torch.no_grad():
        k = head.from_uniform(given, u)
        assert head.possible(k, given.low, given.high).all()
        assert (head.cdf(given, k) >= u - room).all()
        values = known(head).to(dtype)
        near = (k > values[0]) & (k <= values[-1])
        below = values[(torch.searchsorted(values, k) - 1).clamp(min=0)]
        assert (head.cdf(given, below) < u + room)[near].all()


@every_head
def test_quantiles_at_the_ends(head: Inflated) -> None:
    given = laid(head, theta_of(head, 3))
    u = torch.tensor([0.0, 1.0, nan]).double()
    first, last, none = head.from_uniform(given, u).tolist()
    assert first == min(head.rest.least, head.values[0])
    assert last <= max(head.rest.greatest, head.values[-1])
    assert head.cdf(given, torch.tensor([last] * 3).double())[1] == 1
    assert math.isnan(none)


def test_the_last_of_all_values_may_lie_outside() -> None:
    head = Inflated(FEW, (9, 12))
    given = laid(head, theta_of(head, 2))
    assert head.from_uniform(given, torch.ones(2).double()).tolist() == [12, 12]
    assert head.from_uniform(given, torch.zeros(2).double()).tolist() == [0, 0]
    at_rest = head.cdf(given, torch.tensor([3.0, 8.5]).double())
    rest = given.theta[:3].softmax(0)[2]
    torch.testing.assert_close(at_rest, rest)


@every_dtype
@every_head
def test_nothing_breaks_under_extreme_weights(head: Inflated, dtype: torch.dtype) -> None:
    theta = theta_of(head, 30, 100.0).to(dtype).requires_grad_()
    values = known(head)
    k = values[torch.arange(30) * 7 % min(len(values), 100)].to(dtype)
    log_prob = head.log_prob(laid(head, theta), k)
    assert not log_prob.isnan().any()
    assert (log_prob <= 1e-4).all()
    (gradient,) = torch.autograd.grad(log_prob.clamp(min=-1e30).sum(), theta)
    assert gradient.isfinite().all()


def test_what_is_impossible() -> None:
    head = HEADS["on both sides, with gaps"]
    given = laid(head, theta_of(head, 8))
    k = torch.tensor([-7.0, -6.0, -1.0, 0.5, 3.0, 4.0, inf, nan]).double()
    possible = [True, False, True, False, True, False, False, False]
    assert head.possible(k, given.low, given.high).tolist() == possible
    log_prob = head.log_prob(given, k)
    assert log_prob[:7].isfinite().tolist() == possible[:7]
    assert log_prob[7].isnan()


def test_what_is_read_is_the_nearest_integer_of_the_rest_and_a_flag_per_value() -> None:
    rest = Cells(FEW.edges, SMALL, 3, cycles=(Cycle(0.5),))
    head = Inflated(rest, (-7, 2))
    x = torch.tensor([-7.0, 0.0, 2.0])
    read = head.features(x)
    assert (head.read, head.knots, len(read)) == (1 + 3 + 2 + 2, 3, 5)
    assert torch.equal(read[:3], rest.features(x.clamp(min=0)))
    assert read[3:].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert Reading([head]).column(0, x).shape == (8, 3)


@every_dtype
def test_skewed_counts_with_a_spike_start_at_their_frequencies(dtype: torch.dtype) -> None:
    """Zeros, a cap and missing values: as many nats as the frequencies have, and little more."""
    generator = torch.Generator().manual_seed(0)
    k = torch.exp(4 + 1.2 * torch.randn(5000, generator=generator)).floor().clamp(max=2999)
    k = torch.where(torch.rand(5000, generator=generator) < 0.6, 0.0, k)
    k[::20] = 2999
    k[::15] = -1
    _, counts = k.unique(return_counts=True)
    shares = counts / len(k)
    for head in (Inflated(MANY, (-1, 0, 2999)), Inflated(Integer(0, scale=60.0), (-1, 0, 2999))):
        theta = head.initial(k.to(dtype))
        surprise = -head.distribution(theta, head.low, head.high).log_prob(k.to(dtype)).mean()
        assert surprise.item() < -(shares * shares.log()).sum().item() + 0.1
        assert theta[0].exp().item() == pytest.approx((k == -1).float().mean().item(), rel=0.02)


def test_what_a_smooth_rest_predicts_is_left_to_it() -> None:
    generator = torch.Generator().manual_seed(0)
    k = torch.poisson(torch.full((20_000,), 20.0), generator).double()
    head = Inflated(Cells(CurvedEdges(60, Line(20.0, 5.0))), (20, 30))
    own = head.initial(k)[:2].exp()
    assert (own < torch.tensor([0.06, 0.006])).all()  # of 0.089 and 0.0083
    k[:5000] = 20
    assert 0.2 < head.initial(k)[0].exp() < 0.3


@pytest.mark.parametrize("x", [[0.0, 0.0], [-1.0, -1.0, -1.0], [0.0, -1.0, 2.0]])
def test_a_start_is_finite_where_hardly_a_value_is_left(x: list[float]) -> None:
    head = Inflated(FEW, (-1, 0))
    theta = head.initial(torch.tensor(x))
    assert theta.isfinite().all()
    assert head.distribution(theta, head.low, head.high).log_prob(torch.tensor(x)).min() > -4
    assert head.hat_values(torch.tensor(x)).isfinite().all()


def test_heads_to_json_and_back() -> None:
    heads = (*HEADS.values(), Atoms((-3.0, 0.0), -2.0, 2.0, cycles=(Cycle(1.0),)))
    assert heads_of(json.loads(json.dumps(described(heads))), 99) == heads


@pytest.mark.parametrize("values", [(), (1, 1), (0.5,), (inf,)])
def test_values_are_different_integers(values: tuple[float, ...]) -> None:
    message = f"atoms must be one or more different integers, but are {list(values)}; leave out"
    with pytest.raises(ValueError, match=re.escape(message)):
        Inflated(FEW, values)


# Atoms outside the support of the rest.


@every_dtype
def test_an_atom_may_lie_outside(dtype: torch.dtype) -> None:
    head = Atoms((-4.0, 0.5, 7.0), -1.0, 2.0, SMALL)
    theta = theta_of(head, 400).to(dtype)
    given = laid(head, theta)
    x = torch.tensor([-4.0, -3.0, -1.0, 0.5, 2.0, 3.0, 7.0, nan], dtype=dtype)
    possible = [True, False, True, True, True, False, True, False]
    assert head.possible(x, given.low, given.high).tolist() == possible
    d: Any = head.distribution(theta[:8], head.low, head.high)
    assert d.support.check(x).tolist() == possible
    assert (d.log_prob(x)[:7] > -inf).tolist() == possible[:7]
    share = theta[:8, :4].softmax(-1)
    torch.testing.assert_close(d.cdf(x[0].expand(8)), share[:, 0])
    torch.testing.assert_close(d.cdf(x[5].expand(8)), 1 - share[:, 2])
    u = torch.rand(400, generator=torch.Generator().manual_seed(0), dtype=dtype)
    drawn = head.from_uniform(given, u)
    assert head.possible(drawn, given.low, given.high).all()
    first, last = theta[:, :4].softmax(-1)[:, [0, 2]].T
    assert torch.equal(drawn == -4, u < first)
    assert torch.equal(drawn == 7, u >= 1 - last) or dtype == torch.float32
    assert d.icdf(torch.ones(8, dtype=dtype)).tolist() == [7] * 8
    assert d.icdf(torch.zeros(8, dtype=dtype)).tolist() == [-4] * 8


def test_outside_atoms_are_read_at_the_nearest_end() -> None:
    head, x = Atoms((-4.0, 0.5), -1.0, 2.0, SMALL, knots=3), torch.tensor([-4.0, 0.5, 1.5])
    assert head.features(x).tolist() == [[-1, 0.5, 1.5], [1, 0, 0], [0, 1, 0]]
    assert head.hat_values(torch.tensor([-4.0, -4.0, 1.0])).tolist() == [-1, -1, 1]
    assert head.initial(torch.full((5,), -4.0)).isfinite().all()
    # Heads that are clamped to different ends are not evaluated together; others are.
    assert head.kind != Atoms((-4.0, 0.5), -2.0, 2.0, SMALL).kind
    assert Atoms((0.5,), -1.0, 2.0).kind == Atoms((0.5,), -2.0, 2.0).kind
    assert Continuous(-1.0, 2.0).kind == Continuous().kind
