"""Networks of one shape that walk together: each row has what its own network says."""

from __future__ import annotations

import pytest
import torch

import nits
from nits.heads import Categorical, Continuous, Integer
from nits.model.joint import NITS
from nits.model.stacked import Stacked, alike

HEADS = [
    Continuous(hidden=(4,), knots=5),
    Integer(0, 9, hidden=(4,), knots=3),
    Categorical(4),
    Continuous(-9.0, 9.0, hidden=(4,), knots=5, optional=True),
]
ORDER = [2, 0, 3, 1]


def network(seed: int, guess: bool = True, context: int = 0, hidden: int = 12) -> NITS:
    """Returns a network with random weights, lines and knots."""
    model = NITS.mlp(
        HEADS, hidden=hidden, blocks=2, order=ORDER, guess=guess, context=context, generator=seed
    )
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in [*model.parameters(), *(b for n, b in model.named_buffers() if "coef" in n)]:
            p.add_(0.3 * torch.randn(p.shape, generator=source))
        model.reading.knots.add_(0.1 * seed)
    model.load_state_dict(model.state_dict())  # masked weights are zero again
    return model.eval()


@pytest.mark.parametrize("guess", [True, False])
@pytest.mark.parametrize("context", [0, 3])
def test_each_row_has_the_steps_of_its_network(guess: bool, context: int) -> None:
    members = [network(seed, guess, context) for seed in range(3)]
    source = torch.Generator().manual_seed(5)
    member = torch.tensor([2, 0, 0, 2, 2, 0, 2])  # uneven, and none of the second
    told = torch.randn(len(member), context, generator=source) if context else None
    u = torch.rand(len(member), len(HEADS), generator=source)
    with torch.no_grad():
        together = Stacked(members).steps(member, told)
        alone = [one.steps(len(member), told) for one in members]
        for rank in range(len(HEADS)):
            drawn = together.quantile(u[:, rank])
            if rank == 2:  # one that may be missing
                drawn[1] = torch.nan
            for steps in (together.log_prob, together.cdf):
                each = [getattr(one, steps.__name__)(drawn) for one in alone]
                wanted = torch.stack(each)[member, torch.arange(len(member))]
                torch.testing.assert_close(
                    steps(drawn), wanted, rtol=1e-5, atol=1e-5, equal_nan=True
                )
            for one in (together, *alone):
                one.feed(drawn)


def test_rows_in_order_need_no_places() -> None:
    members = [network(seed) for seed in range(2)]
    steps = Stacked(members).steps(torch.tensor([0, 0, 1, 1]))
    assert steps.places.place is None
    with torch.no_grad():
        wanted = torch.cat([one.steps(2).given.theta for one in members], 1)
        torch.testing.assert_close(steps.given.theta, wanted)


@pytest.mark.parametrize("context", [0, 3])
def test_rows_are_filled_as_by_their_network(context: int, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [network(seed, context=context) for seed in range(3)]
    source = torch.Generator().manual_seed(6)
    member = torch.randint(3, (40,), generator=source)
    told = torch.randn(40, context, generator=source) if context else None
    u = torch.rand(40, len(HEADS), generator=source)
    given = torch.full_like(u, torch.nan)
    given[::3, ORDER[0]] = 2.0
    # Several turns, so that rows of one must not end among those of another.
    monkeypatch.setattr(NITS, "stepped_at_once", property(lambda self: 16))
    with torch.no_grad():
        found = Stacked(members).filled(u, given, member, told)
        each = torch.stack([one.filled(u, given, told) for one in members])
    wanted = each[member, torch.arange(40)]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_a_mixture_draws_its_networks_together_and_others_alone() -> None:
    alone = network(7, hidden=16)
    mixture = nits.Mixture([network(0), alone, network(1)], weights=[1, 1, 2])
    chosen = torch.tensor([0, 1, 2, 2, 0, 1])
    with torch.no_grad():
        found = list(mixture._chosen(chosen))
    stack, rows, which = found[0]
    assert isinstance(stack, Stacked)
    assert (rows.tolist(), which.tolist()) == ([0, 2, 3, 4], [0, 1, 1, 0])
    assert found[1][0] is alone
    assert found[1][1].tolist() == [1, 5]
    assert not any(isinstance(some, Stacked) for some, *_ in mixture._chosen(chosen))


def test_draws_of_a_mixture_have_its_distribution() -> None:
    """Kolmogorov and Smirnov's test on a real column: a false alarm in about 5,000 runs."""
    members = [network(0, False), network(7, False, hidden=16), network(1, False)]
    mixture = nits.Mixture(members, weights=[1, 1, 2])
    rows = mixture.sample(4000, generator=1)
    with torch.no_grad():
        u = mixture.to_uniform(rows)[:, 0].sort().values.double()
    even = (torch.arange(4000) + 0.5) / 4000
    assert float((u - even).abs().max()) < 2.2 / 4000**0.5


def test_only_networks_of_one_shape_are_stacked() -> None:
    other = NITS.mlp(HEADS, hidden=12, blocks=2, guess=True)  # another order
    members = [
        network(0),
        network(1, guess=False),
        network(2),
        network(3, hidden=16),
        NITS.independent(HEADS),
        other,
        nits.Calibrated(network(4)),
        network(5),
        NITS.independent(HEADS),
        NITS.mlp(HEADS, hidden=12, blocks=2, order=ORDER, guess=True, codes=3),
    ]
    assert alike(members) == [[0, 2, 7], [1], [3], [4], [5], [6], [8], [9]]
