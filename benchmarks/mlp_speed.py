"""How fast NITS-MLP trains, scores and samples, as ratios between programs timed alternately in one run.

    python benchmarks/mlp_speed.py [--rounds 15]        writes benchmarks/results/mlp_speed.json

Three questions: what skipping the zero blocks saves, how far a training step is from its matrix
products alone, and what a sampled row costs beside a scored one and beside D passes of the network.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import Times, alternately, ratios, spread, write
from torch import Tensor

from nits import NITS
from nits.training import memory, subnormal
from nits.weights.block_linear import BlockLinear

SEED = 0
BATCH = 1024
GEMM_SIZE = 2048


def seconds(times: Times) -> dict[str, dict[str, float]]:
    """Returns the median and the quartiles of each program's seconds."""
    return {name: spread(values) for name, values in times.items()}


def started_at_quantiles(
    columns: int, hidden: int, noise: float, blocks: int = 4
) -> tuple[NITS, Tensor]:
    """Returns a model that follows standard normal data, with weights of size `noise` on top, and rows."""
    torch.manual_seed(SEED)
    model = NITS.mlp(columns, hidden=hidden, blocks=blocks)
    x = torch.randn(4096, columns)
    theta = [head.initial(x[:, i]) for i, head in enumerate(model.ordered)]
    model.weights.start_at(torch.cat(theta))
    last = model.weights.get_submodule("last")
    if not isinstance(last, BlockLinear):
        raise TypeError(f"the last layer is a {type(last).__name__}")
    with torch.no_grad():
        last.weight.normal_(std=noise).mul_(last.mask)
    return model, x


def layers(model: NITS) -> list[BlockLinear]:
    """Returns the block-triangular layers."""
    return [layer for layer in model.modules() if isinstance(layer, BlockLinear)]


def made_dense(model: NITS) -> NITS:
    """Returns a copy whose layers multiply whole masked matrices."""
    dense = copy.deepcopy(model)
    for layer in layers(dense):
        layer.forward = layer.dense  # type: ignore[method-assign]
    return dense


def forward_and_backward(model: NITS, x: Tensor) -> Tensor:
    """Returns the mean log-density; its gradients are left in the parameters."""
    model.zero_grad()
    value = model.log_prob(x).mean()
    value.backward()
    return value.detach()


def largest_difference(a: NITS, b: NITS, x: Tensor) -> dict[str, float]:
    """Returns how far log-densities and gradients lie apart, relative to the largest of each."""
    with torch.no_grad():
        values = a.log_prob(x), b.log_prob(x)
    forward_and_backward(a, x)
    forward_and_backward(b, x)
    gradients = [
        [p.grad for p in model.parameters() if p.grad is not None and p.grad.any()]
        for model in (a, b)
    ]
    return {
        "log_prob": relative(*values),
        "gradient": max(relative(g, h) for g, h in zip(*gradients, strict=True)),
    }


def relative(a: Tensor, b: Tensor) -> float:
    """Returns the largest |a − b| over the largest |b|."""
    return float((a - b).abs().max() / b.abs().max())


def skipped_blocks(rounds: int) -> dict[str, Any]:
    """Block-triangular against masked dense: D = 63, hidden 1024, forward and backward with the PNN."""
    model, rows = started_at_quantiles(63, 1024, noise=0.005)
    model.native, x = True, rows[:BATCH]
    dense = made_dense(model)
    same = largest_difference(model, dense, x)
    programs: dict[str, Callable[[], object]] = {
        "blocks": lambda: forward_and_backward(model, x),
        "dense": lambda: forward_and_backward(dense, x),
    }
    with memory.kept():
        times = alternately(programs, rounds)
    return {
        "what": "D=63, hidden=1024, 4 residual blocks, batch 1024, forward and backward, PNNs in C++",
        "seconds": seconds(times),
        "blocks_over_dense": ratios(times, "blocks", "dense"),
        "target": "at most 0.75, same to 1e-4",
        "largest_relative_difference": same,
        "share_of_weights_multiplied": sum(m.multiplied for m in layers(model))
        / sum(m.weight.numel() for m in layers(model)),
    }


def training_step(model: NITS, x: Tensor) -> Callable[[], object]:
    """Returns one step of AdamW on these rows."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss = -model.log_prob(x).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()

    return step


def matrix_product() -> Callable[[], object]:
    """Returns a square float32 product of 2·2048³ operations."""
    a, b = torch.randn(2, GEMM_SIZE, GEMM_SIZE)
    out = torch.empty(GEMM_SIZE, GEMM_SIZE)
    return lambda: torch.mm(a, b, out=out)


def against_the_gemm_bound(rounds: int) -> dict[str, Any]:
    """A training step against its matrix products at the sgemm rate of the same round: D = 21, hidden 512."""
    model, rows = started_at_quantiles(21, 512, noise=0.0)
    model.compiled = model.native = True
    flops = 6 * BATCH * sum(layer.multiplied for layer in layers(model))
    gemm_flops = 2 * GEMM_SIZE**3
    with memory.kept(), subnormal.flushed():
        times = alternately(
            {"sgemm": matrix_product(), "step": training_step(model, rows[:BATCH])}, rounds
        )
    return {
        "what": "D=21, hidden=512, 4 residual blocks, batch 1024: zero_grad, log_prob, backward, "
        "clip_grad_norm_, fused AdamW, PNN kernels in C++, started at the data's quantiles, freed memory "
        "kept and subnormal numbers rounded to zero as in fit",
        "seconds": seconds(times),
        "step_gflop": flops / 1e9,
        "sgemm_gflop_per_s": spread([gemm_flops / t / 1e9 for t in times["sgemm"]]),
        "step_over_bound": ratios(times, "step", "sgemm", gemm_flops / flops),
        "target": "at most 1.8",
    }


def sampling(rounds: int, n: int = 4096, slow_n: int = 1024) -> dict[str, Any]:
    """Rows sampled against rows scored, and against D passes of the network: D = 63, hidden 512."""
    model, x = started_at_quantiles(63, 512, noise=0.005)
    u = torch.rand(n, model.columns, generator=torch.Generator().manual_seed(SEED))
    with torch.no_grad(), memory.kept():
        drawn = model.from_uniform(u)
        programs: dict[str, Callable[[], object]] = {
            "sample": lambda: model.from_uniform(u),
            "score": lambda: model.log_prob(x[:n]),
        }
        times = alternately(programs, rounds)
        few = alternately(one_pass_against_many(model, u[:slow_n]), max(3, rounds // 3))
        back = model.to_uniform(drawn)
    return {
        "what": f"D=63, hidden=512, 4 residual blocks, n={n} rows, no gradients, kernels in C++",
        "largest_value_drawn": float(drawn.abs().max()),
        "largest_error_of_the_round_trip": float((back - u).abs().max()),
        "seconds": seconds(times),
        "sampled_over_scored_rows_per_s": ratios(times, "score", "sample"),
        "target": "at least 0.4",
        "d_passes": {
            "what": f"n={slow_n} rows each way: each unit once; the whole network once per column; or a full "
            "pass per column, network and quantiles of all columns, as zuko and nflows make",
            "seconds": seconds(few),
            "speed_up_over_networks": ratios(few, "d_networks", "one_pass"),
            "speed_up_over_full_passes": ratios(few, "d_full_passes", "one_pass"),
            "target": "at least 20",
        },
    }


def one_pass_against_many(model: NITS, u: Tensor) -> dict[str, Callable[[], object]]:
    """Returns the ways from uniform numbers to rows; all with the same kernel for quantiles."""
    return {
        "one_pass": lambda: model.from_uniform(u),
        "d_networks": lambda: model._differentiable(u, None, torch.full_like(u, torch.nan)),
        "d_full_passes": lambda: full_passes(model, u),
    }


def full_passes(model: NITS, u: Tensor) -> Tensor:
    """Inverts all columns given the row so far, D times: after pass i the first i columns are right."""
    x = torch.zeros_like(u)
    for _ in range(model.columns):
        theta = model._theta(model.described(x), None).split(model.weights.outputs)
        columns = enumerate(zip(theta, model.described(u), strict=True))
        x = torch.stack([model._invert(i, part, v) for i, (part, v) in columns], 1)
    return x


def main(argv: list[str] | None = None) -> int:
    """Runs the benchmarks and writes the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args(argv).rounds
    results: dict[str, Any] = {"seed": SEED, "rounds": rounds}
    start = time.perf_counter()
    for part in (skipped_blocks, against_the_gemm_bound, sampling):
        results[part.__name__] = part(rounds)
        print(json.dumps({part.__name__: results[part.__name__]}, indent=2), flush=True)
    results["wall_clock_seconds"] = round(time.perf_counter() - start, 1)
    print(write("mlp_speed", results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
