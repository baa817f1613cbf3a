"""Reading: hat functions on a column's quantiles, and where their knots lie."""

import copy
import re

import pytest
import torch

from nits import NITS
from nits.heads import Categorical, Continuous, Quantized
from nits.model.reading import Reading, hats
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from registry import SMALL, seeded

SIZE = 0.8 * 5**0.5  # of a hat among five


def test_hats_share_out_one() -> None:
    knots = torch.tensor([-2.0, -1.9, 0.0, 0.5, 4.0])
    x = torch.linspace(-3, 5, 200)
    read = hats(x, knots)
    assert read.shape == (5, 200)
    torch.testing.assert_close(read.sum(0), torch.full_like(x, SIZE))
    assert ((read > 0).sum(0) <= 2).all()


def test_a_hat_is_one_at_its_own_knot_and_straight_in_between() -> None:
    knots = torch.tensor([-2.0, -1.9, 0.0, 0.5, 4.0])
    torch.testing.assert_close(hats(knots, knots), SIZE * torch.eye(5))
    between = hats(torch.tensor([0.125]), knots)[:, 0] / SIZE
    torch.testing.assert_close(between, torch.tensor([0, 0, 0.75, 0.25, 0]))


def test_beyond_the_knots_the_last_hat_stays_up() -> None:
    read = hats(torch.tensor([-9.0, 9.0]), torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])) / SIZE
    torch.testing.assert_close(read, torch.eye(5)[:, [0, 4]])


def test_knots_that_coincide_give_a_step() -> None:
    knots = torch.tensor([0.0, 1.0, 1.0, 1.0, 2.0])
    x = torch.tensor([0.999, 1.0, 1.001], requires_grad=True)
    read = hats(x, knots)
    assert torch.isfinite(read).all()
    assert not torch.equal(read[:, 0], read[:, 2])
    read.sum().backward()
    assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]
    assert torch.isfinite(hats(x, torch.ones(5))).all()


@pytest.mark.parametrize("knots", [0, 4])
def test_a_column_reads_as_it_does_among_the_others(knots: int) -> None:
    heads = [
        Continuous(0.0, 1.0, knots=knots),
        Continuous(knots=knots),
        Quantized(0.0, 1.0, 6, knots=3),
        Continuous(knots=2),
    ]
    reading = Reading(heads)
    x = torch.rand(4, 30, generator=seeded(0))
    x[2] = torch.randint(6, (30,), generator=seeded(1)).float()
    apart = torch.cat([reading.column(i, x[i]) for i in range(4)])
    torch.testing.assert_close(reading(x), apart)
    assert len(apart) == sum(head.inputs for head in heads)


def test_knots_before_data_lie_in_the_support() -> None:
    heads = [
        Continuous(50.0, 60.0, knots=3),
        Continuous(100.0, knots=3),
        Continuous(high=-7.0, knots=3),
    ]
    reading = Reading([*heads, Continuous(knots=3), Quantized(5.0, 9.0, 4, knots=3)])
    found = reading.knots.reshape(5, 3).tolist()
    assert found == [[50, 55, 60], [100, 100.5, 101], [-8, -7.5, -7], [-3, 0, 3], [-1, 0, 1]]


def test_training_puts_the_knots_at_quantiles_and_the_file_keeps_them() -> None:
    model = NITS.mlp([Continuous(hidden=SMALL, knots=5)] * 2, hidden=8, blocks=1, order=[1, 0])
    x = torch.stack([torch.arange(101.0), -10 * torch.arange(101.0)], 1)
    start_from_data(model, Rows(x))
    expected = torch.tensor([[-1000.0, -750, -500, -250, 0], [0, 25, 50, 75, 100]])
    torch.testing.assert_close(model.reading.knots.reshape(2, 5), expected)
    other = NITS.mlp([Continuous(hidden=SMALL, knots=5)] * 2, hidden=8, blocks=1, order=[1, 0])
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.reading.knots, model.reading.knots)
    assert torch.equal(copy.deepcopy(model).log_prob(x), other.log_prob(x))


def test_without_knots_nothing_is_kept() -> None:
    assert "reading.knots" not in NITS.mlp(2, hidden=8, blocks=1).state_dict()


@pytest.mark.parametrize("count", [-1, 1, 2.5])
def test_one_knot_is_refused(count: int) -> None:
    message = f"knots must be 0, or an integer of at least 2, but is {count!r}; try knots=32."
    with pytest.raises(ValueError, match=re.escape(message)):
        Continuous(knots=count)


def test_what_is_missing_reads_as_zeros_and_a_flag() -> None:
    reading = Reading(
        [Continuous(knots=3, optional=True), Categorical(2, optional=True), Continuous()]
    )
    x = torch.tensor([[torch.nan, 0.0], [1.0, torch.nan], [2.0, 2.0]])
    read = reading(x)
    assert read.shape == (5 + 3 + 1, 2)
    assert read[:5, 0].tolist() == [0, 0, 0, 0, 1]
    assert read[4].tolist() == [1, 0]
    assert read[5:8, 1].tolist() == [0, 0, 1]
    assert (read[5:7, 0] != 0).tolist() == [False, True]
