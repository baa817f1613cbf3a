"""What training and sampling cost beside their bounds, each pair of programs timed in turn.

    python benchmarks/costs.py [training_step sampling mixture image_sampling] [--rounds 15]
        → benchmarks/results/cost-training_step.json, …

`training_step`: a step of NITS-MLP beside its matrix products alone. `sampling`: rows drawn from
NITS-MLP beside rows scored. `mixture`: rows scored and drawn by a mixture of eight beside those of
one of its members. `image_sampling`: images drawn from NITS-CONV beside as many passes of
the whole network as they have channels.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch
from contenders import Contender, Size, layers, started_at_quantiles, training_step
from results import Record, write_figures
from timing import Program, Programs, alternately, ratios, seconds, spread

from nits import NITS, Mixture
from nits.heads import Quantized
from nits.training import memory, subnormal
from nits.weights import SIZES

BATCH, GEMM_SIZE, SAMPLED = 1024, 2048, 4096
MEMBERS, DRAWN = 8, 4096
IMAGES = 16
SHAPES = {"28 × 28": (1, 28, 28), "32 × 32 × 3": (3, 32, 32)}


def matrix_product() -> Program:
    """Returns a square float32 product of 2·2048³ operations."""
    a, b = torch.randn(2, GEMM_SIZE, GEMM_SIZE)
    out = torch.empty(GEMM_SIZE, GEMM_SIZE)
    return lambda: torch.mm(a, b, out=out)


def cost_of_a_training_step(rounds: int) -> Record:
    """A training step over its matrix products at the sgemm rate of the same round."""
    model = started_at_quantiles(Size(21, 512, 4), noise=0.0)
    flops = 6 * BATCH * sum(layer.multiplied for layer in layers(model))
    gemm_flops = 2 * GEMM_SIZE**3
    step = training_step(Contender(model, model.log_prob), torch.randn(BATCH, model.columns))
    with memory.kept(), subnormal.flushed():
        times = alternately({"sgemm": matrix_product(), "step": step}, rounds)
    return {
        "what": "D=21, hidden=512, 4 residual blocks, batch 1024: zero_grad, log_prob, backward, "
        "clip_grad_norm_, fused AdamW, PNN kernels in C++, started at the data's quantiles, freed "
        "memory kept and subnormal numbers rounded to zero as in fit",
        "seconds": seconds(times),
        "step_gflop": flops / 1e9,
        "sgemm_gflop_per_s": spread([gemm_flops / t / 1e9 for t in times["sgemm"]]),
        "step_over_bound": ratios(times, "step", "sgemm", gemm_flops / flops),
    }


@torch.no_grad()
def cost_of_sampling(rounds: int) -> Record:
    """Rows sampled over rows scored."""
    model = started_at_quantiles(Size(63, 512, 4))
    x, u = torch.randn(SAMPLED, model.columns), torch.rand(SAMPLED, model.columns)
    with memory.kept():
        programs = {"sample": lambda: model.from_uniform(u), "score": lambda: model.log_prob(x)}
        times = alternately(programs, rounds)
    return {
        "what": f"D=63, hidden=512, 4 residual blocks, n={SAMPLED} rows, no gradients, C++ kernels",
        "seconds": seconds(times),
        "sampled_over_scored_rows_per_s": ratios(times, "score", "sample"),
    }


@torch.no_grad()
def cost_of_a_mixture(rounds: int) -> Record:
    """Rows scored by all members over as often by one, and rows drawn over those of one."""
    models = [started_at_quantiles(Size(15, 128, 2)) for _ in range(MEMBERS)]
    whole, one = Mixture(models), models[0]
    x = torch.randn(DRAWN, one.columns)
    programs = {
        "one scores": lambda: one.log_prob(x),
        "all score": lambda: whole.log_prob(x),
        "one draws": lambda: one.sample(DRAWN, generator=0),
        "all draw": lambda: whole.sample(DRAWN, generator=0),
    }
    with memory.kept():
        times = alternately(programs, rounds)
    return {
        "what": f"{MEMBERS} members of D=15, hidden=128, 2 residual blocks, n={DRAWN} rows, "
        "no gradients, C++ kernels",
        "seconds": seconds(times),
        "scoring_over_members": ratios(times, "all score", "one scores", 1 / MEMBERS),
        "drawing_over_one": ratios(times, "all draw", "one draws"),
    }


@torch.no_grad()
def cost_of_image_sampling(rounds: int) -> Record:
    """Images drawn with cached activations, over a pass of the network for every channel."""
    found = {}
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        model = NITS.conv(shape, Quantized(0.0, 1.0, 256), size=SIZES["small"]).eval()
        times = alternately(image_programs(model), max(2, rounds // 5))
        factor = ratios(times, "pass", "sample", model.columns)
        found[name] = {"images": IMAGES, "seconds": seconds(times), "passes_over_sampling": factor}
    return found


def image_programs(model: NITS) -> Programs:
    """Returns the drawing of some images, and the scoring of as many."""
    u, x = torch.rand(IMAGES, model.columns), torch.zeros(IMAGES, model.columns)
    return {"sample": lambda: model.from_uniform(u), "pass": lambda: model.log_prob(x)}


PARTS = {
    "training_step": cost_of_a_training_step,
    "sampling": cost_of_sampling,
    "mixture": cost_of_a_mixture,
    "image_sampling": cost_of_image_sampling,
}


def main(argv: list[str] | None = None) -> int:
    """Measures the parts that the command line names, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args(argv)
    for name in args.parts:
        found = PARTS[name](args.rounds)
        print(json.dumps({name: found}, indent=2), flush=True)
        print(write_figures(f"cost-{name}", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
