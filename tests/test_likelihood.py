"""The likelihood of rows, what of them is hidden, and the weights that training starts from."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import nits
from nits.heads import Continuous
from nits.training.likelihood import mean_log_likelihood, start_from_data, withheld_entries
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


def test_some_rows_have_more_hidden_than_others() -> None:
    """At a rate r uniform on [0, 2 · share], n r of n entries are hidden, and r varies by row."""
    n, share, count = 4000, 0.3, 20
    heads = [Continuous(hidden=(2,), optional=i < count) for i in range(count + 1)]
    model = nits.NITS.mlp(heads, hidden=32, blocks=0, order=[*range(count, -1, -1)])
    generator = torch.Generator().manual_seed(0)
    hidden = withheld_entries(model, torch.zeros(n, count + 1), share, generator)
    assert not hidden[:, count].any()  # the column that may not be missing
    each = hidden[:, :count].double().sum(1)
    deviation = 2 * share / 12**0.5
    within = count * (share - share**2 - deviation**2)  # E[n r (1 − r)]
    between = (count * deviation) ** 2
    assert each.mean() == pytest.approx(count * share, rel=0.05)
    assert each.var() == pytest.approx(within + between, rel=0.1)
