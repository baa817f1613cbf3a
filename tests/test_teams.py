"""Members that step together: what each of them says of the same rows on its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nits import NITS, Mixture
from nits.heads import Categorical, Continuous, Integer
from nits.model.teams import Teams
from registry import randomized, seeded

HEADS = [Continuous(), Integer(0, 5), Continuous(-1.0, 2.0), Categorical(3)]
ROWS = 7


def members(context: int = 0) -> list[NITS]:
    """Networks of three shapes, whose members do not lie side by side."""
    makes = [
        lambda: NITS.mlp(HEADS, hidden=16, blocks=1, context=context, guess=True),
        lambda: NITS.mlp(HEADS, hidden=16, blocks=1, context=context),
        lambda: NITS.mlp(HEADS, hidden=8, blocks=0, context=context, codes=4),
    ]
    return [randomized(makes[k], seed) for seed, k in enumerate([0, 1, 0, 2, 1, 0])]


def rows() -> Tensor:
    with torch.no_grad():
        return Mixture(members()).sample(ROWS, generator=0)


@pytest.mark.parametrize("context", [0, 2])
def test_members_say_what_they_say_alone(context: int) -> None:
    every, x = members(context), rows()
    about = torch.randn(ROWS, context, generator=seeded(1)) if context else None
    u = torch.rand(ROWS, generator=seeded(2))
    with torch.no_grad():
        found, alone = Teams(every, ROWS, about), [one.steps(ROWS, about) for one in every]
        assert len(found) == len(every) > len(found.places)
        for i in range(x.shape[1]):
            for method, values in (("log_prob", x[:, i]), ("cdf", x[:, i]), ("quantile", u)):
                expected = torch.stack([getattr(one, method)(values) for one in alone])
                torch.testing.assert_close(
                    found.each(method, values), expected, rtol=2e-4, atol=2e-5
                )
            quantiles = torch.stack([one.quantile(u) for one in alone])
            member = torch.randint(len(every), (ROWS,), generator=seeded(i))
            torch.testing.assert_close(
                found.quantiles(member, u),
                quantiles.gather(0, member[None])[0],
                rtol=2e-4,
                atol=2e-5,
            )
            found.feed(x[:, i])
            for one in alone:
                one.feed(x[:, i])


def test_gradients_are_recorded_as_they_are_of_each() -> None:
    """What is stacked records none, so members then step one by one."""
    every, x = members(), rows()
    steps = Mixture(every).steps(ROWS)
    total = torch.zeros(ROWS)
    for i in range(x.shape[1]):
        total = total + steps.log_prob(x[:, i])
        steps.feed(x[:, i])
    total.sum().backward()
    assert all(any(p.grad is not None for p in one.parameters()) for one in every)


def test_there_may_be_no_row() -> None:
    with torch.no_grad():
        assert Teams(members(), 0).each("cdf", torch.empty(0)).shape == (6, 0)
