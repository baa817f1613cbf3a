"""One training step at the paper's CIFAR-10 size, 53 million weights: its time and the memory it takes.

python benchmarks/paper_size.py [--batch 4]        → benchmarks/results/paper_size.json
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import measure
import torch

import nits
from nits.heads import Quantized
from nits.weights import SIZES


def main(argv: list[str] | None = None) -> int:
    """Takes two steps on random images; the first includes set-up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", choices=list(SIZES), default="paper-cifar10")
    args = parser.parse_args(argv)
    model = nits.NITS.conv((3, 32, 32), Quantized(0.0, 1.0, 256), size=SIZES[args.size])
    optimizer = torch.optim.Adam(model.parameters(), 2e-4)
    x = torch.randint(
        256, (args.batch, model.columns), generator=torch.Generator().manual_seed(0)
    ).float()
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        optimizer.zero_grad()
        (-model.log_prob(x).mean()).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begun)
    found = {
        "size": args.size,
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": args.batch,
        "seconds_first_step": seconds[0],
        "seconds_second_step": seconds[1],
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    figures = f"{seconds[1]:.1f} s, {found['peak_gib']:.1f} GiB"
    print(f"{found['parameters']:,} weights, batch {args.batch}: {figures}")
    print(f"written to {measure.write('paper_size', found)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
