"""Bad input: every message, word for word."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nits import PNN, QuantizedPNN, checks, heads
from pnns import weights

inf, nan = math.inf, math.nan
theta = weights(2).float()
d, q = PNN(theta, -1.0, 2.0), QuantizedPNN(theta, -1.0, 2.0, 8)
like = torch.zeros(1)

CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "theta too narrow": (
        lambda: PNN(theta[:, :10], -1.0, 2.0),
        ValueError,
        "theta must have shape (…, 320) for hidden=(16, 16), but has (2, 10); "
        "nits.pnn_parameters(hidden) gives the number of weights.",
    ),
    "theta without dimension": (
        lambda: PNN(torch.tensor(1.0), -1.0, 2.0),
        ValueError,
        "theta must have shape (…, 320) for hidden=(16, 16), but has (); "
        "nits.pnn_parameters(hidden) gives the number of weights.",
    ),
    "theta a list": (
        lambda: PNN([0.0], -1.0, 2.0),  # type: ignore[arg-type]
        TypeError,
        "theta must be a tensor, but is a list; use torch.as_tensor.",
    ),
    "theta half": (
        lambda: PNN(theta.half(), -1.0, 2.0),
        TypeError,
        "theta must be float32 or float64, but is float16; convert it with theta.float().",
    ),
    "no hidden layer": (
        lambda: PNN(theta, -1.0, 2.0, hidden=()),
        ValueError,
        "hidden must be one or more positive integers, but is (); try (16, 16).",
    ),
    "hidden layer of width zero": (
        lambda: PNN(theta, -1.0, 2.0, hidden=(16, 0)),
        ValueError,
        "hidden must be one or more positive integers, but is (16, 0); try (16, 16).",
    ),
    "low above high": (
        lambda: PNN(theta, 2.0, -1.0),
        ValueError,
        "low must be below high, but got low=2 and high=-1; swap them or widen the support.",
    ),
    "low equal to high in one row": (
        lambda: PNN(theta, torch.tensor([0.0, 2.0]), 2.0),
        ValueError,
        "low must be below high, but got low=2 and high=2; swap them or widen the support.",
    ),
    "low NaN": (
        lambda: PNN(theta, nan, 2.0),
        ValueError,
        "low must be below high, but got low=nan and high=2; swap them or widen the support.",
    ),
    "support of another shape": (
        lambda: PNN(theta, torch.zeros(3), 2.0),
        ValueError,
        "low and high must broadcast to theta's batch shape (2,), but have shapes (3,) and (); "
        "pass numbers, or one end per PNN.",
    ),
    "u above one": (
        lambda: d.icdf(torch.tensor([0.5, 1.5])),
        ValueError,
        "u must lie in [0, 1], but holds 1.5; quantiles are taken at probabilities.",
    ),
    "u below zero": (
        lambda: q.icdf(torch.tensor([-0.25, 1.0])),
        ValueError,
        "u must lie in [0, 1], but holds -0.25; quantiles are taken at probabilities.",
    ),
    "one bin": (
        lambda: QuantizedPNN(theta, -1.0, 2.0, 1),
        ValueError,
        "bins must be an integer of at least 2, but is 1; 8-bit pixels need 256.",
    ),
    "half a bin": (
        lambda: QuantizedPNN(theta, -1.0, 2.0, 2.5),  # type: ignore[arg-type]
        ValueError,
        "bins must be an integer of at least 2, but is 2.5; 8-bit pixels need 256.",
    ),
    "bins on a line": (
        lambda: QuantizedPNN(theta, -inf, 2.0, 8),
        ValueError,
        "low and high must be finite, so that equal bins can tile the support, but one is "
        "infinite; pass two finite numbers.",
    ),
    "complex x": (
        lambda: d.log_prob(torch.zeros(2, dtype=torch.complex64)),
        TypeError,
        "x must be a tensor of real numbers, but is complex64; make it float32.",
    ),
    "integer x": (
        lambda: d.cdf(torch.zeros(2, dtype=torch.int64)),
        TypeError,
        "x must be float32 or float64, but is int64; convert it with x.float().",
    ),
    "boolean x": (
        lambda: d.survival(torch.zeros(2, dtype=torch.bool)),
        TypeError,
        "x must be a tensor of real numbers, but is bool; make it float32.",
    ),
    "x of another dtype": (
        lambda: d.log_prob(torch.zeros(2, dtype=torch.float64)),
        TypeError,
        "x must have the dtype of theta, float32, but is float64; "
        "convert it with x.to(theta.dtype).",
    ),
    "x a number": (
        lambda: d.log_prob(0.5),  # type: ignore[arg-type]
        TypeError,
        "x must be a tensor, but is a float; use torch.as_tensor.",
    ),
    "integer s": (
        lambda: d.log_mass(torch.zeros(2, dtype=torch.int64), torch.ones(2)),
        TypeError,
        "s must be float32 or float64, but is int64; convert it with s.float().",
    ),
    "complex t": (
        lambda: d.log_mass(torch.zeros(2), torch.ones(2, dtype=torch.complex64)),
        TypeError,
        "t must be a tensor of real numbers, but is complex64; make it float32.",
    ),
    "integer u": (
        lambda: d.icdf(torch.zeros(2, dtype=torch.int64)),
        TypeError,
        "u must be float32 or float64, but is int64; convert it with u.float().",
    ),
    "complex k": (
        lambda: q.log_prob(torch.zeros(2, dtype=torch.complex64)),
        TypeError,
        "k must be a tensor of real numbers, but is complex64; make it float32.",
    ),
    "head the wrong way round": (
        lambda: heads.Continuous(1.0, 0.0),
        ValueError,
        "low must be below high, but got low=1 and high=0; swap them or widen the support.",
    ),
    "head with bins on a line": (
        lambda: heads.Quantized(0.0, inf, 8),
        ValueError,
        "low and high must be finite, so that equal bins can tile the support, but one is "
        "infinite; pass two finite numbers.",
    ),
    "order that repeats a column": (
        lambda: checks.order([0, 0, 2], 3),
        ValueError,
        "order must name each of 3 columns once, but is (0, 0, 2); "
        "leave it out to model the columns in their own order.",
    ),
    "weight model of other widths": (
        lambda: checks.widths((3, 4), (3, 5)),
        ValueError,
        "the weight model hands out (3, 4) weights per column, but the heads need (3, 5); "
        "make it with outputs=[head.weights for head in heads].",
    ),
    "no samples": (
        lambda: checks.positive("n", 0),
        ValueError,
        "n must be a positive integer, but is 0.",
    ),
    "rows with too few columns": (
        lambda: checks.rows("x", torch.zeros(5, 2), 3, like),
        ValueError,
        "x must have shape (N, 3), but has 2 columns; "
        "reshape it, or pass the columns of the model.",
    ),
    "rows in one dimension": (
        lambda: checks.rows("x", torch.zeros(5), 3, like),
        ValueError,
        "x must have shape (N, 3), but has shape (5,); "
        "reshape it, or pass the columns of the model.",
    ),
    "rows of another dtype": (
        lambda: checks.rows("x", torch.zeros(5, 3).double(), 3, like),
        TypeError,
        "x must have the dtype of the model, float32, but is float64; "
        "convert it with x.to(torch.float32), or the model with model.to(x.dtype).",
    ),
    "context missing": (
        lambda: checks.context(None, 5, 2, like),
        ValueError,
        "this model needs a context of 2 features per row, but got none; pass context=.",
    ),
    "context not wanted": (
        lambda: checks.context(torch.zeros(5, 2), 5, 0, like),
        ValueError,
        "this model takes no context, but got one; make it with context=<number of features>.",
    ),
    "context too short": (
        lambda: checks.context(torch.zeros(4, 2), 5, 2, like),
        ValueError,
        "context must have 5 rows, one per row scored or drawn, but has 4; repeat or cut it.",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), list(CASES.values()), ids=list(CASES))
def test_message(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_good_input_passes() -> None:
    assert checks.hidden([3, 4]) == (3, 4)
    assert checks.order(None, 3) == (0, 1, 2)
    assert checks.order([2, 0, 1], 3) == (2, 0, 1)
    assert checks.context(None, 5, 0, like) is None
    assert checks.bins(2) == 2
    checks.widths((3, 4), (3, 4))
    checks.positive("n", 1)
    checks.ends(-inf, inf)
    u = torch.tensor([0.0, nan, 1.0])
    assert checks.probability(u) is u
