"""Holes, hidden entries and given columns: what a model makes of rows that are known in part."""

import re

import pytest
import torch
from torch import Tensor

from nits import NITS, fit, kernels
from nits.heads import Categorical, Continuous
from registry import SMALL, kinds_of_tables, mlp, randomized, seeded

nan = torch.nan


@pytest.fixture
def model() -> NITS:
    """Six columns of all kinds, in the order 1, 0, 2, 5, 4, 3; 0, 1, 3 and 4 are optional."""
    return randomized(lambda: mlp(kinds_of_tables(), order=[1, 0, 2, 5, 4, 3]), 1)


def with_holes(model: NITS, n: int, columns: list[int]) -> tuple[Tensor, Tensor]:
    whole = model.sample(n, generator=1)
    holes = whole.clone()
    holes[:, columns] = nan
    return whole, holes


def test_a_hole_has_no_likelihood_and_the_columns_before_it_are_the_same(model: NITS) -> None:
    whole, holes = with_holes(model, 20, [4])
    full, part = model.log_prob_per_column(whole), model.log_prob_per_column(holes)
    assert (part[:, 4] == 0).all()
    before = [1, 0, 2, 5]
    torch.testing.assert_close(part[:, before], full[:, before])
    assert not torch.equal(
        part[:, 3], full[:, 3]
    )  # modelled after column 4: it is told of the hole
    torch.testing.assert_close(model.log_prob(holes), part.sum(1))


def test_a_hidden_entry_keeps_its_own_likelihood(model: NITS) -> None:
    whole, holes = with_holes(model, 20, [4])
    hidden = torch.zeros_like(whole, dtype=torch.bool)
    hidden[:, 4] = True
    full, part = model.log_prob_per_column(whole), model.log_prob_per_column(holes)
    seen = model.log_prob_per_column(whole, withheld=hidden)
    torch.testing.assert_close(seen[:, 4], full[:, 4])
    torch.testing.assert_close(seen[:, 3], part[:, 3])


def test_gradients_are_finite_where_there_are_holes(model: NITS) -> None:
    _, holes = with_holes(model, 20, [0, 1, 3, 4])
    model.log_prob(holes).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_kernels_or_not_holes_are_the_same(model: NITS) -> None:
    _, holes = with_holes(model, 20, [0, 4])
    plain = model.log_prob_per_column(holes)
    with kernels.using(training=True) as ran:
        torch.testing.assert_close(model.log_prob_per_column(holes), plain, rtol=1e-4, atol=1e-4)
    assert "native" in ran


def test_columns_that_are_given_stay_and_the_rest_follows_its_conditional(model: NITS) -> None:
    given = torch.full((6,), nan)
    given[1], given[0] = 2.0, -0.5
    x = model.sample(3000, generator=2, given=given)
    assert (x[:, 1] == 2).all()
    assert (x[:, 0] == -0.5).all()
    conditional = model.conditionals(x[:1])[2]
    k = torch.arange(-20, 20).float()
    expected = conditional.log_prob(k.unsqueeze(1)).exp().squeeze(1)
    found = (x[:, 2:3] == k).float().mean(0)
    assert (found - expected).abs().max() < 5 * 0.5 / 3000**0.5  # five standard errors at most
    with torch.enable_grad():
        slow = model.rsample(5, generator=2, given=given)
    torch.testing.assert_close(
        slow, model.sample(5, generator=2, given=given), rtol=1e-4, atol=1e-4
    )


def test_rows_may_be_given_to_a_different_extent(model: NITS) -> None:
    given = torch.full((3, 6), nan)
    given[0, 1], given[1, [1, 0]] = 1.0, torch.tensor([0.0, 3.0])
    x = model.sample(3, generator=0, given=given)
    assert x[0, 1] == 1
    assert x[1, :2].tolist() == [3.0, 0.0]
    assert x.isfinite().all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            torch.zeros(5),
            "given must have shape (6,) or (2, 6), but has (5,); put NaN where values are to be",
        ),
        (
            torch.tensor([0.0, nan, nan, nan, nan, nan]),
            "given columns must come first in the order in which columns are modelled, "
            "[1, 0, 2, 5, 4, 3]",
        ),
    ],
)
def test_what_cannot_be_given(model: NITS, given: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        model.sample(2, given=given)


def test_training_on_holes_learns_what_is_there() -> None:
    """x_1 follows x_0 where it is known; where it is not, x_1 is as wide as its marginal."""
    torch.manual_seed(0)
    generator = seeded(0)
    x0 = torch.randn(3000, generator=generator)
    rows = torch.stack([x0, x0 + 0.2 * torch.randn(3000, generator=generator)], 1)
    rows[::4, 0] = nan
    heads = [Continuous(hidden=SMALL, optional=True), Continuous(hidden=SMALL)]
    model = NITS.mlp(heads, hidden=32, blocks=1)
    fit(model, rows, max_steps=250, progress=False)
    with torch.no_grad():
        known, unknown = (
            model.log_prob_per_column(rows[at])[:, 1].mean()
            for at in (~rows[:, 0].isnan(), rows[:, 0].isnan())
        )
    assert known > 0  # log-density of N(0, 0.2): 0.19
    assert -1.6 < unknown < -1.35  # of N(0, 1.02): −1.44


def test_holes_in_a_column_that_is_not_optional_are_refused() -> None:
    rows = torch.randn(50, 2, generator=seeded(0))
    rows[3, 1] = nan
    heads = [Continuous(hidden=SMALL, optional=True), Continuous(hidden=SMALL)]
    with pytest.raises(ValueError, match="data must hold finite values, but 1 of 50 rows"):
        fit(NITS.mlp(heads, hidden=8, blocks=1), rows, max_steps=1, progress=False)


def test_hiding_teaches_what_to_do_without_a_column() -> None:
    """No value is missing: only hidden entries can have taught the second column's marginal."""
    from nits import Recipe

    torch.manual_seed(0)
    generator = seeded(0)
    kind = torch.randint(2, (3000,), generator=generator).float()
    rows = torch.stack([kind, 4 * kind - 2 + 0.3 * torch.randn(3000, generator=generator)], 1)
    heads = [Categorical(2, optional=True), Continuous(hidden=SMALL)]
    model = NITS.mlp(heads, hidden=32, blocks=1)
    fit(model, rows, max_steps=300, recipe=Recipe(hide=0.3, batch_size=256), progress=False)
    without = rows.clone()
    without[:, 0] = nan
    with torch.no_grad():
        whole, part = model.log_prob_per_column(rows)[:, 1].mean(), model.log_prob(without).mean()
    assert -0.35 < whole < -0.15  # log-density of N(·, 0.3): −0.21
    assert -1.05 < part < -0.85  # of an even mixture of two: −0.21 − log 2
