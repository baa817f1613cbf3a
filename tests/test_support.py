"""Impossible values, and what is no number."""

import math

import torch

from nits.pnn.support import restricted
from pnns import every_dtype


@every_dtype
def test_the_impossible_is_minus_infinity_and_nan_stays_nan(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 2.0, math.nan], dtype=dtype)
    log_prob = torch.tensor([-0.5, math.nan, 7.0], dtype=dtype)
    found = restricted(log_prob, x, x < 1.5)
    assert found.dtype == dtype
    assert found[:2].tolist() == [-0.5, -math.inf]
    assert found[2].isnan()


def test_integers_are_never_nan() -> None:
    x = torch.tensor([1, 2])
    assert restricted(torch.zeros(2), x, x == 1).tolist() == [0, -math.inf]


def test_the_impossible_has_no_gradient() -> None:
    log_prob = torch.tensor([-0.5, -0.5, -0.5], requires_grad=True)
    x = torch.tensor([1.0, 2.0, math.nan])
    restricted(log_prob, x, x < 1.5)[0].backward()
    assert log_prob.grad is not None
    assert log_prob.grad.tolist() == [1, 0, 0]
