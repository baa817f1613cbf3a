"""The likelihood of rows, what of them is hidden, and the weights that training starts from."""

from __future__ import annotations

import math

import pytest
from torch import Tensor

import nits
from nits.training.likelihood import mean_log_likelihood, start_from_data
from nits.training.rows import Rows
from two_columns import rows, small


def test_starts_from_the_independent_marginals() -> None:
    model, x = small(), rows(5000)
    start_from_data(model, Rows(x))
    alone = [mean_log_likelihood(_one(x[:, i : i + 1]), Rows(x[:, i : i + 1])) for i in range(2)]
    assert mean_log_likelihood(model, Rows(x)) == pytest.approx(sum(alone), abs=1e-5)
    marginal = -0.5 * math.log(2 * math.pi) - 0.5
    assert sum(alone) == pytest.approx(2 * marginal, abs=0.1)


def _one(column: Tensor) -> nits.NITS:
    model = nits.NITS.independent([nits.heads.Continuous(hidden=(6, 6))])
    start_from_data(model, Rows(column))
    return model
