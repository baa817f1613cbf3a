"""Shrunk straight lines of each column on the features of the columns before."""

import math

import pytest
import torch
from torch import Tensor

from nits.weights import lines
from nits.weights.lines import fitted
from registry import seeded


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def residuals(found: Tensor, features: Tensor, targets: Tensor) -> Tensor:
    return targets - found[:, :-1] @ features - found[:, -1:]


def lost(found: Tensor, best: Tensor, features: Tensor, targets: Tensor) -> Tensor:
    """Nats by which lines are behind better ones, each with the variance it has on these rows."""
    ours, theirs = (residuals(a, features, targets).square().mean(1) for a in (found, best))
    return 0.5 * (ours / theirs).log()


def constants(targets: Tensor, features: int) -> Tensor:
    """Lines that are constant: the means of the targets."""
    return torch.cat([targets.new_zeros(len(targets), features), targets.mean(1, keepdim=True)], 1)


def walk(columns: int, rows: int, seed: int) -> Tensor:
    return 0.1 * normal(columns, rows, seed=seed).cumsum(0)


@pytest.mark.parametrize(
    ("columns", "rows"), [(60, 1500), pytest.param(300, 3000, marks=pytest.mark.slow)]
)
def test_a_random_walk_depends_on_the_last_column(columns: int, rows: int) -> None:
    x, fresh = walk(columns, rows, seed=1), walk(columns, 20_000, seed=2)
    found = fitted(x, x, range(columns))
    truth = torch.diag(torch.ones(columns - 1, dtype=torch.float64), -1)
    truth = torch.cat([truth, torch.zeros(columns, 1)], 1)
    behind = lost(found, truth, fresh, fresh).sum()
    assert behind < 2 * columns / 300
    assert not found[:, :-1].triu().any()


def ridge(x: Tensor, y: Tensor, penalty: float) -> Tensor:
    """Ridge regressions by the textbook, of targets y on features x with mean about zero."""
    slopes = torch.linalg.solve(x @ x.t() + penalty * torch.eye(len(x)), x @ y.t()).t()
    return torch.cat([slopes, y.mean(1, keepdim=True)], 1)


def test_many_weak_effects_are_found_as_by_the_best_ridge_regression() -> None:
    slopes, x = 0.1 * normal(8, 100, seed=1), normal(100, 5300, seed=2)
    y = slopes @ x + normal(8, 5300, seed=3)
    found = fitted(x[:, :300], y[:, :300], [100] * 8)
    rivals = [ridge(x[:, :300], y[:, :300], penalty) for penalty in (30.0, 100.0, 300.0)]
    assert max(lost(found, rival, x[:, 300:], y[:, 300:]).mean() for rival in rivals) < 0.01


def test_nothing_is_lost_where_there_is_nothing_to_find() -> None:
    behind = []
    for seed in range(4):
        x, fresh = normal(30, 50, seed=seed), normal(30, 2000, seed=100 + seed)
        behind.append(lost(fitted(x, x, range(30)), constants(x, 30), fresh, fresh).mean())
    assert torch.stack(behind).mean() < 0.02


def test_a_plain_line_is_the_least_squares_one() -> None:
    x = normal(2, 4000) * torch.tensor([[3.0], [1e-3]]) + torch.tensor([[1e4], [5.0]])
    y = (2 * x[:1] - 700 * x[1:] + 5) + normal(1, 4000, seed=1)
    ones = torch.cat([x, torch.ones(1, 4000)]).t().double()
    exact = torch.linalg.lstsq(ones, y.t()).solution.t()
    torch.testing.assert_close(fitted(x, y, [2]), exact, rtol=2e-3, atol=0)


def test_features_behind_the_limit_have_coefficient_zero() -> None:
    x = normal(6, 200)
    y = x.sum(0, keepdim=True).expand(7, -1)
    found = fitted(x, y, range(7))
    assert not found[:, :-1].triu().any()
    torch.testing.assert_close(
        found[6], torch.tensor([1.0] * 6 + [0.0]).double(), atol=1e-3, rtol=0
    )


HARD = {
    "one-hot": torch.eye(4).double()[torch.randint(4, (300,), generator=seeded(1))].t(),
    "twice": normal(1, 300, seed=2).expand(4, -1),
    "constant": torch.full((4, 300), 7.0).double(),
    "outlier": normal(4, 300, seed=3).index_fill(1, torch.tensor([5]), 1e6),
    "cauchy": torch.tan(math.pi * (torch.rand(4, 300, generator=seeded(4)).double() - 0.5)),
    "huge": normal(4, 300, seed=5) * 1e200,
    "tiny": normal(4, 300, seed=6) * 1e-200,
    "rare": (torch.arange(300) % torch.tensor([[50], [100], [150], [299]]) == 0).double(),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_features_give_finite_lines_and_do_no_harm(name: str) -> None:
    x = torch.cat([HARD[name], normal(1, 300, seed=7)])
    useful = torch.stack([x[4], normal(300, seed=8), x[0]])
    found = fitted(x, useful, [5, 5, 5])
    assert found.isfinite().all()
    ordinary = (x.abs() < 100).all(0) if name in {"outlier", "cauchy"} else torch.full((300,), True)
    error = residuals(found, x, useful)[:, ordinary].square().mean(1)
    assert error[0] < 1e-3
    assert error[1] < 1.1
    assert error[2] <= 1e-3 * x[0, ordinary].square().mean()


def test_one_row_does_not_decide() -> None:
    x = normal(3, 500)
    y = x[:1] + 0.5 * normal(1, 500, seed=1)
    spoilt = y.clone()
    spoilt[0, 9] = 1e6
    torch.testing.assert_close(fitted(x, spoilt, [3]), fitted(x, y, [3]), atol=0.03, rtol=0)


def test_rows_without_a_value_are_left_out() -> None:
    x = normal(4, 400)
    y = x[:1] - x[3:] + normal(1, 400, seed=1)
    holes = y.clone()
    holes[0, 100:] = torch.nan
    both = fitted(x, torch.cat([holes, y, y]), [4, 4, 4])
    torch.testing.assert_close(both[0], fitted(x[:, :100], y[:, :100], [4])[0], atol=0.1, rtol=0)
    torch.testing.assert_close(both[1], fitted(x, y, [4])[0])


def test_the_budget_of_missing_values_keeps_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BUDGET", 1e3)
    monkeypatch.setattr(lines, "FEWEST", 5)
    x = walk(12, 600, seed=1)
    holes = x.masked_fill(normal(12, 600, seed=2) > 1, torch.nan)
    found = fitted(x, holes, range(12))
    fresh = walk(12, 4000, seed=3)
    assert residuals(found, fresh, fresh).square().mean() < 0.012
    assert ((found[:, :-1] != 0).sum(1) <= 5).all()


def test_weights_count_rows() -> None:
    x = normal(2, 300)
    y = torch.where(torch.arange(300) < 150, x[:1], -x[:1])
    for first, sign in ((1.0, 1.0), (0.0, -1.0)):
        weight = torch.full((300,), 1 - first)
        weight[:150] = first
        found = fitted(x, y, [2], weight)
        torch.testing.assert_close(found[0, 0], torch.tensor(sign).double(), atol=0.01, rtol=0)
    even = fitted(x, y, [2], torch.full((300,), 3.0))
    torch.testing.assert_close(even, fitted(x, y, [2]))


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("features", [0, 1, 20])
def test_few_rows_and_features(rows: int, features: int) -> None:
    y = normal(3, rows, seed=1)
    y[2] = torch.nan
    found = fitted(normal(features, rows), y, [0, features, features])
    assert found.shape == (3, features + 1)
    assert found.isfinite().all()
    if rows:
        torch.testing.assert_close(found[0, -1], y[0].mean())
    assert not found[2].any()


def test_the_same_lines_every_time() -> None:
    x, state = normal(5, 100), torch.get_rng_state()
    assert torch.equal(fitted(x, x, range(5)), fitted(x, x, range(5)))
    assert torch.equal(torch.get_rng_state(), state)


def test_sums_that_are_kept_or_made_anew_give_the_same_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = walk(25, 200, seed=3)
    found = []
    for numbers in (0, 1 << 40):
        monkeypatch.setattr(lines.Part, "_sums", lambda _, numbers=numbers: numbers)
        found.append(fitted(x, x, range(25)))
    kept, anew = found
    assert torch.allclose(kept, anew, rtol=0, atol=1e-9)
    assert kept.any()
