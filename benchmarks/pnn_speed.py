"""Speed of one layer of the library: log-densities of 65,536 PNNs, and evaluations of F per quantile.

    python benchmarks/pnn_speed.py        writes benchmarks/results/pnn_speed.json

The rivals: torch.compile's kernels; `nits.pnn.plain`, which takes its slope by autograd; and
bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import measure
import torch
from torch import Tensor

from nits import PNN, pnn_parameters
from nits.heads import Continuous
from nits.kernels import compiled, native
from nits.pnn import network
from nits.pnn.plain import PlainPNN

HIDDEN = (16, 16)
PNNS = 65_536
COLUMNS = 64
ROUNDS = 9
LOW, HIGH = -1.0, 2.0


def main() -> int:
    """Runs both comparisons, prints them and writes the result file."""
    speed, evaluations = log_prob_speed(), quantile_evaluations()
    for rival in ("compiled", "plain"):
        ratio = speed[f"{rival}_over_native"]
        print(
            f"log_prob forward + backward, {PNNS:,} PNNs of {HIDDEN}: {rival} takes "
            f"{ratio['median']:.1f} times as long as the kernels in C++ "
            f"(from {ratio['quartile_low']:.1f} to {ratio['quartile_high']:.1f}; target 5 for plain)"
        )
    for row in evaluations:
        print(
            f"icdf, {row['dtype']} on [{row['low']:g}, {row['high']:g}] to {row['error']:.0e}: "
            f"{row['newton']:.1f} evaluations of F; bisection {row['bisection_stopped']:.1f} "
            f"({row['stopped_over_newton']:.1f} times) if each is stopped in time, "
            f"{row['bisection_fixed']} ({row['fixed_over_newton']:.1f} times) for all; target 3"
        )
    path = measure.write("pnn_speed", {"log_prob": speed, "icdf": evaluations})
    print(f"written to {path}")
    return 0


def log_prob_speed() -> dict[str, Any]:
    """Times log_prob and its gradient with respect to theta, program by program, in float32.

    Each gets theta as it would have it: ours as training does, 64 columns of 1024 rows, one
    column's weights together; the plain one with each weight of all PNNs together, the order in
    which it reads them.
    """
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(pnn_parameters(HIDDEN), PNNS, generator=generator)
    x = LOW + (HIGH - LOW) * torch.rand(1, PNNS, generator=generator)
    low, high = torch.full((COLUMNS, 1), LOW), torch.full((COLUMNS, 1), HIGH)
    columns = theta.unflatten(1, (COLUMNS, -1)).movedim(1, 0).contiguous()
    head = Continuous(LOW, HIGH, HIDDEN)

    def gradient(log_prob: Callable[[Tensor], Tensor]) -> Tensor:
        weights = columns.detach().requires_grad_()
        found: Tensor = torch.autograd.grad(log_prob(weights).sum(), weights)[0]
        return found.transpose(0, 1)

    def ours() -> Tensor:
        return gradient(
            lambda theta: native.log_prob(theta, (x.view(COLUMNS, -1),), low, high, HIDDEN)
        )

    def by_torch() -> Tensor:
        return gradient(
            lambda theta: compiled.log_prob(head, theta, (x.view(COLUMNS, -1),), low, high)
        )

    def plain() -> Tensor:
        weights = theta.detach().requires_grad_()
        log_prob = PlainPNN(weights, low[0], high[0], HIDDEN).log_density(x[0])
        (found,) = torch.autograd.grad(log_prob.sum(), weights)
        return found.reshape(-1, COLUMNS, PNNS // COLUMNS)

    # Plain differences lose digits where F is flat: a few gradients in ten thousand may differ.
    if torch.isclose(ours(), plain(), rtol=1e-2, atol=1e-3).double().mean() < 0.999:
        raise RuntimeError("the two programs do not compute the same gradients.")
    times = measure.alternately({"native": ours, "compiled": by_torch, "plain": plain}, ROUNDS)
    return {
        "pnns": PNNS,
        "hidden": HIDDEN,
        "dtype": "float32",
        "rounds": ROUNDS,
        "seconds": {name: measure.spread(values) for name, values in times.items()},
        "compiled_over_native": measure.ratios(times, "compiled", "native"),
        "plain_over_native": measure.ratios(times, "plain", "native"),
    }


@torch.no_grad()
def quantile_evaluations() -> list[dict[str, Any]]:
    """Counts evaluations of F per quantile: ours, and bisection's to the same greatest error.

    Bisection is counted twice: each quantile stopped as soon as it is good enough, which takes an
    oracle, and as many steps for all as the slowest needs, which is how a fixed number of steps is
    chosen.
    """
    rows = []
    for dtype in (torch.float32, torch.float64):
        for low, high in ((LOW, HIGH), (-30.0, 30.0)):
            theta = torch.randn(
                200, pnn_parameters(HIDDEN), generator=torch.Generator().manual_seed(1)
            )
            d, u = PNN(theta.to(dtype), low, high, HIDDEN), probabilities(dtype, len(theta))
            x, newton = counted(partial(d.icdf, u))
            error = float((d.cdf(x) - u).abs().max())
            steps = bisection(d, u, error)
            row = {
                "dtype": str(dtype).removeprefix("torch."),
                "low": low,
                "high": high,
                "error": error,
            }
            per_quantile, mean, most = (
                newton / u.numel(),
                float(steps.double().mean()),
                int(steps.max()),
            )
            row |= {"newton": per_quantile, "bisection_stopped": mean, "bisection_fixed": most}
            row |= {
                "stopped_over_newton": mean / per_quantile,
                "fixed_over_newton": most / per_quantile,
            }
            rows.append(row)
    return rows


def probabilities(dtype: torch.dtype, n: int) -> Tensor:
    """From 1e-6 to 1 − 1e-6, dense at both ends, shape (21, n)."""
    u = torch.sigmoid(torch.linspace(math.log(1e-6), -math.log(1e-6), 21, dtype=torch.float64))
    return u.clamp(1e-6, 1 - 1e-6).to(dtype)[:, None].expand(21, n)


def counted(program: Callable[[], Tensor]) -> tuple[Tensor, int]:
    """Runs a program and counts the points at which it evaluates F."""
    points = 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(at: network.Normalized, x: Tensor) -> Any:
            nonlocal points
            points += x.numel()
            return function(at, x)

        return call

    with ExitStack() as stack:
        for name in ("cdf", "cdf_and_density", "log_density"):
            stack.enter_context(mock.patch.object(network, name, counting(getattr(network, name))))
        result = program()
    return result, points


def bisection(d: PNN, u: Tensor, tolerance: float) -> Tensor:
    """Returns the evaluations with which bisection finds each quantile to a tolerance in N."""
    left, right = d.low.expand_as(u), d.high.expand_as(u)
    steps, open_ = torch.zeros_like(u, dtype=torch.int64), torch.ones_like(u, dtype=torch.bool)
    while open_.any() and steps.max() < 64:  # then the bracket is as narrow as float64 has it
        steps += open_
        middle = (left + right) / 2
        error = d.cdf(middle) - u
        left, right = torch.where(error < 0, middle, left), torch.where(error < 0, right, middle)
        open_ = open_ & (error.abs() > tolerance)
    return steps


if __name__ == "__main__":
    raise SystemExit(main())
