"""Cells: edges one by one or along a curve, and a PNN seen through them."""

import json
import math
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nits import PNN, kernels
from nits.heads import Cells, Continuous, CurvedEdges, Cycle, Edges, Given, ListedEdges
from nits.heads.description import described, heads_of
from nits.model.reading import Reading
from nits.pnn.binned import CellsPNN, IntegerPNN
from nits.pnn.curves import Asinh, Curve, Line, Log, Logit
from nits.pnn.integers import Integers
from pnns import every_dtype, weights

inf, nan = math.inf, math.nan
SMALL = (6, 5)
LISTED = ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0))
CURVES = {
    "line": Line(5.0, 2.0),
    "log": Log(-1.0, 1, 2.0, 0.8),
    "log mirrored": Log(60.0, -1, 2.0, 0.8),
    "asinh": Asinh(11.0, 3.0, 1.2),
    "logit": Logit(-2.0, 51.0, 0.3, 1.5),
}
EDGES: dict[str, Edges] = {"listed": LISTED} | {
    name: CurvedEdges(50, curve) for name, curve in CURVES.items()
}
every_curve = pytest.mark.parametrize("curve", list(CURVES.values()), ids=list(CURVES))
every_edges = pytest.mark.parametrize("edges", list(EDGES.values()), ids=list(EDGES))


def ends(edges: Edges, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return torch.tensor(edges.low, dtype=dtype), torch.tensor(edges.high, dtype=dtype)


@every_curve
def test_a_curve_increases_and_goes_back(curve: Curve) -> None:
    k = torch.linspace(-0.5, 49.5, 400, dtype=torch.float64)
    u = curve.at(k)
    assert (u.diff() > 0).all()
    torch.testing.assert_close(curve.back(u), k, rtol=0, atol=1e-11)


def test_what_the_curves_are() -> None:
    k = torch.tensor([3.0]).double()
    assert Line(1.0, 4.0).at(k).item() == 0.5
    assert Log(1.0, 1, 0.5, 2.0).at(k).item() == pytest.approx((math.log(2) - 0.5) / 2)
    assert Log(5.0, -1, 0.5, 2.0).at(k).item() == pytest.approx(-(math.log(2) - 0.5) / 2)
    assert Asinh(1.0, 4.0, 2.0).at(k).item() == pytest.approx(math.asinh(0.5) / 2)
    assert Logit(1.0, 4.0, 0.5, 2.0).at(k).item() == pytest.approx((math.log(2) - 0.5) / 2)


@every_dtype
@every_edges
def test_neighbours_share_their_edge_and_the_ends_are_those_of_the_support(
    edges: Edges, dtype: torch.dtype
) -> None:
    k = torch.arange(edges.count, dtype=dtype)
    lower, upper = edges.edges(k, *ends(edges, dtype))
    assert torch.equal(lower[1:], upper[:-1])
    assert (lower[0], upper[-1]) == ends(edges, dtype)
    assert torch.equal(upper, edges.exact[1:].to(dtype))
    assert torch.equal(edges.reach(k + 0.7, *ends(edges, dtype)), upper)


def test_edges_along_a_curve_lie_between_integers() -> None:
    edges = CurvedEdges(3, Line(1.0, 2.0))
    assert edges.exact.tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert (edges.low, edges.high, edges.least, edges.greatest) == (-0.75, 0.75, 0, 2)


@every_edges
def test_every_point_lies_in_the_cell_that_contains_it(edges: Edges) -> None:
    x = torch.linspace(edges.low, edges.high, 301, dtype=torch.float64)[1:]
    lower, upper = edges.edges(edges.containing(x), *ends(edges))
    assert ((lower < x) & (x <= upper)).all()
    assert torch.equal(edges.containing(edges.exact[1:]), torch.arange(edges.count).double())
    outside = torch.tensor([-1e9, edges.low, 1e9, nan]).double()
    assert edges.containing(outside)[:3].tolist() == [0, 0, edges.greatest]
    assert edges.containing(outside)[3].isnan()


def test_what_is_no_cell() -> None:
    k = torch.tensor([-1.0, 0.0, 1.5, 3.0, 4.0, inf, -inf, nan]).double()
    assert LISTED.possible(k).tolist() == [False, True, False, True, False, False, False, False]
    lower, upper = LISTED.edges(k, *ends(LISTED))
    assert lower[:7].tolist() == [-2, -2, -2, 0.9, -2, -2, -2]
    assert upper[:7].tolist() == [-0.7, -0.7, -0.7, 3, -0.7, -0.7, -0.7]
    reached = LISTED.reach(k, *ends(LISTED))
    assert reached[:7].tolist() == [-2, -0.7, 0.1, 3, 3, 3, -2]
    assert LISTED.centre(k)[:4].tolist() == pytest.approx([-1.35, -1.35, -0.3, 1.95])
    for found in (lower, upper, reached, LISTED.centre(k)):
        assert found[7].isnan()


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: ListedEdges((1.0,)), "there is 1;"),
        (lambda: ListedEdges(()), "there is none;"),
        (lambda: ListedEdges((0.0, 2.0, 2.0)), "2 is followed by 2;"),
        (lambda: ListedEdges((0.0, 1.0, inf)), "1 is followed by inf;"),
        (lambda: CurvedEdges(4, Log(0.0, 1, 0.0, 1.0)), "the first is nan; list every edge"),
        (lambda: CurvedEdges(4, Line(0.0, -1.0)), "0.5 is followed by -0.5;"),
    ],
)
def test_edges_must_ascend(make: object, fault: str) -> None:
    words = "edges must be two or more finite numbers in ascending order, but " + fault
    with pytest.raises(ValueError, match=re.escape(words)):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("scale", [1, 10, 100])
@every_dtype
@every_edges
def test_mass_is_one_under_any_weights(edges: Edges, dtype: torch.dtype, scale: float) -> None:
    d = CellsPNN(weights(20, scale, SMALL).to(dtype), edges, SMALL)
    room = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(d.probs.sum(-1), torch.ones(20, dtype=dtype), rtol=0, atol=room)
    u = torch.rand(50, 20, generator=torch.Generator().manual_seed(0), dtype=dtype)
    k = d.icdf(u)
    if room < 1e-6 or scale < 100:  # in float32, quantiles under steep units are cells off
        assert (d.cdf(k) >= u - room).all()
        assert (d.cdf(k - 1) < u + room).all()


def test_even_cells_are_integers() -> None:
    theta = weights(3, hidden=SMALL)
    cells = CellsPNN(theta, CurvedEdges(20, Line(7.0, 3.0)), SMALL)
    integers = IntegerPNN(theta, Integers(0, 19, 7.0, 3.0), SMALL)
    for name in ("logits", "mean", "variance", "mode"):
        torch.testing.assert_close(getattr(cells, name), getattr(integers, name))
    torch.testing.assert_close(cells.entropy(), integers.entropy())
    k = torch.arange(-1, 21).double().unsqueeze(1)
    torch.testing.assert_close(cells.survival(k), integers.survival(k))


def test_a_quarter_of_a_million_cells() -> None:
    """In float32: masses sum to one, and moments agree with those of all cells."""
    edges = CurvedEdges(2**18, Asinh(1000.0, 500.0, 1.5))
    d = CellsPNN(weights(1, hidden=SMALL).float(), edges, SMALL)
    probs, k = d.probs.double()[0], torch.arange(2**18).double()
    assert probs.sum().item() == pytest.approx(1, abs=1e-5)
    mean = (probs * k).sum()
    deviation = (probs * (k - mean) ** 2).sum().sqrt()
    assert abs(d.mean.item() - mean) < 1e-3 * deviation
    assert d.variance.sqrt().item() == pytest.approx(deviation.item(), rel=1e-3)
    assert d.entropy().item() == pytest.approx(-(probs * probs.log()).sum().item(), abs=5e-3)


@every_dtype
@every_edges
def test_the_head_has_the_pmf_of_its_distribution(edges: Edges, dtype: torch.dtype) -> None:
    head = Cells(edges, SMALL)
    theta, k = weights(edges.count, hidden=SMALL).to(dtype), torch.arange(edges.count, dtype=dtype)
    given = Given(theta.T, *(end.reshape(1) for end in ends(edges, dtype)))
    d = head.distribution(theta, head.low, head.high)
    rtol, atol = (1e-4, 1e-5) if dtype == torch.float32 else (1e-9, 1e-12)
    torch.testing.assert_close(head.log_prob(given, k), d.log_prob(k), rtol=rtol, atol=atol)
    torch.testing.assert_close(head.cdf(given, k), d.cdf(k), rtol=rtol, atol=atol)
    middle = d.cdf(k) - d.log_prob(k).exp() / 2
    torch.testing.assert_close(head.to_uniform(given, k), middle, rtol=rtol, atol=atol)
    again = head.from_uniform(given, middle)
    assert torch.equal(again[middle < 0.99], k[middle < 0.99])  # in float32 the last are all 1
    assert head.discrete
    assert torch.equal(head.features(k), edges.centre(k).unsqueeze(0))


def test_masses_are_those_of_the_pnn() -> None:
    theta = weights(1, hidden=SMALL)[0]
    d, pnn = CellsPNN(theta, LISTED, SMALL), PNN(theta, -2.0, 3.0, SMALL)
    cumulative = pnn.cdf(torch.tensor([-0.7, 0.1, 0.9, 3.0]).double())
    torch.testing.assert_close(d.probs.cumsum(0), cumulative)


def test_cells_start_at_their_frequencies() -> None:
    """Skewed counts: as many nats as the frequencies have, and little more."""
    generator = torch.Generator().manual_seed(0)
    k = torch.exp(3 + 1.2 * torch.randn(5000, generator=generator)).floor().clamp(max=499)
    for dtype in (torch.float32, torch.float64):
        head = Cells(CurvedEdges(500, Log(-1.0, 1, 3.0, 1.2)))
        d = head.distribution(head.initial(k.to(dtype)), head.low, head.high)
        shares = k.long().bincount() / len(k)
        surprise = -d.log_prob(k.to(dtype)).mean().item()
        assert surprise < sum_of_information(shares) + 0.1


def sum_of_information(shares: Tensor) -> float:
    known = shares[shares > 0]
    return float(-(known * known.log()).sum())


def test_heads_to_json_and_back() -> None:
    clock = (Cycle(1 / 7, 0.25), Cycle(0.1, harmonics=3))
    heads = [Cells(edges, SMALL, 3, True, clock) for edges in EDGES.values()]
    words = json.dumps(described([*heads, Continuous(), Continuous(cycles=clock)]))
    assert heads_of(json.loads(words), 99) == (*heads, Continuous(), Continuous(cycles=clock))
    assert len({*heads, *heads}) == len(heads)
    first, second = heads[:2]
    assert first.kind != second.kind
    assert replace(first, cycles=()).kind != first.kind


# Cycles.


def test_a_cycle_is_read_as_a_point_on_a_circle() -> None:
    head = Continuous(cycles=(Cycle(1 / 24, 0.25, harmonics=2), Cycle(2.0)), knots=3)
    x = torch.tensor([0.0, 6.0, 30.0, 1.0])
    read = head.features(x)
    assert head.read == 1 + 3 + 6
    assert read.shape == (7, 4)
    turns = torch.stack([x / 24 + 0.25, 2 * (x / 24 + 0.25), 2 * x])
    angle = 2 * math.pi * turns
    expected = 2**0.5 * torch.stack([angle.cos(), angle.sin()], 1).flatten(0, 1)
    torch.testing.assert_close(read[1:], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(read[1:5, 1], read[1:5, 2], atol=1e-6, rtol=0)  # a day later
    assert torch.equal(read[0], x)


def test_cycles_far_from_zero_are_exact() -> None:
    head = Cells(CurvedEdges(2**18, Line(0.0, 1e5)), cycles=(Cycle(1 / 7),))
    k = 7.0 * torch.arange(2.0**18 // 7)
    torch.testing.assert_close(head.features(k)[1], torch.full_like(k, 2**0.5))
    assert head.features(k)[2].abs().max() < 1e-6


def test_hats_stay_those_of_the_value() -> None:
    clock = (Cycle(0.3),)
    with_cycles, without = Continuous(knots=4, cycles=clock), Continuous(knots=4)
    x = torch.linspace(-2, 2, 9)
    found, plain = (Reading([head]).column(0, x) for head in (with_cycles, without))
    assert torch.equal(found[:5], plain)
    assert found.shape == (7, 9)


def test_a_cycle_has_harmonics() -> None:
    with pytest.raises(ValueError, match="harmonics must be a positive integer, but is 0"):
        Cycle(1.0, harmonics=0)


def test_the_cdf_by_the_kernel_of_masses() -> None:
    theta = weights(40, hidden=SMALL).float().T
    x, low, high = torch.linspace(-1, 2, 40), torch.tensor([-1.0]), torch.tensor([2.0])
    x[7] = nan
    with torch.no_grad():
        with kernels.using(native=True) as ran:
            found = kernels.cdf(theta, x, low, high, SMALL)
            block = kernels.cdf(theta[None], x[None], low[:, None], high[:, None], SMALL)
        with kernels.using(native=False, compiled=False):
            expected = kernels.cdf(theta, x, low, high, SMALL)
    assert ran == {"native"}
    assert torch.equal(block[0].nan_to_num(), found.nan_to_num())
    assert found[[0, -1]].tolist() == [0, 1]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
