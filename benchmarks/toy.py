"""Whether `nits.fit` reaches the truth: eight densities whose exact logarithm is known, two minutes each.

    python benchmarks/toy.py [--minutes 2] [--only moons ring] → benchmarks/results/toy.json

For each: the mean log-likelihood on unseen rows beside the truth's, and the Kolmogorov–Smirnov
p-values of to_uniform(unseen rows), per column, on as many rows as LEVEL asks about: a model whose
columns all pass at LEVEL would be told from the truth by that test once in 1 / LEVEL tries if it
were the truth.
"""

from __future__ import annotations

import argparse
from typing import Any

import measure
import torch
from scipy import stats
from torch import Tensor

import nits
from nits.datasets import toy

LEVEL = 1e-3
TRAIN, TEST, KS_ROWS = 200_000, 50_000, 2_000


def heads(density: toy.Density, mean: Tensor, scale: Tensor) -> list[nits.heads.Continuous]:
    """Returns heads with the density's support, in standardized units."""
    ends = zip((density.low - mean) / scale, (density.high - mean) / scale, strict=True)
    return [nits.heads.Continuous(float(low), float(high)) for low, high in ends]


def run(name: str, minutes: float, seed: int) -> dict[str, Any]:
    """Trains on one density and compares with the truth."""
    density = toy.density(name)
    x = density.sample(TRAIN, torch.Generator().manual_seed(seed))
    unseen = density.sample(TEST, torch.Generator().manual_seed(seed + 1))
    mean, scale = x.mean(0), x.std(0)
    torch.manual_seed(seed)
    model = nits.NITS.mlp(heads(density, mean, scale), hidden=128, blocks=2)
    history = nits.fit(model, (x - mean) / scale, max_minutes=minutes, seed=seed)
    with torch.no_grad():
        z = (unseen - mean) / scale
        log_prob = model.log_prob(z).double() - scale.log().sum()
        u = model.to_uniform(z[:KS_ROWS])
    truth = density.log_prob(unseen).double()
    pvalues = [float(stats.kstest(column.numpy(), "uniform").pvalue) for column in u.t()]
    return {
        "columns": density.dimension,
        "truth": float(truth.mean()),
        "model": float(log_prob.mean()),
        "gap": float((truth - log_prob).mean()),
        "gap_two_standard_errors": float(2 * (truth - log_prob).std() / TEST**0.5),
        "ks_pvalues": pvalues,
        "ks_passes": min(pvalues) > LEVEL,
        "steps": history.step[-1],
        "seconds": history.seconds[-1],
        "compiled": history.compiled,
    }


def main() -> None:
    """Runs all densities and writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="+", default=list(toy.DENSITIES), choices=list(toy.DENSITIES)
    )
    options = parser.parse_args()
    results: dict[str, Any] = {
        "minutes": options.minutes,
        "seed": options.seed,
        "level": LEVEL,
        "ks_rows": KS_ROWS,
    }
    for name in options.only:
        results[name] = found = run(name, options.minutes, options.seed)
        print(
            f"{name:14s} truth {found['truth']:8.4f}  model {found['model']:8.4f}  gap {found['gap']:.4f}",
            end="  ",
        )
        print(
            f"smallest KS p-value {min(found['ks_pvalues']):.3f}  {found['steps']} steps",
            flush=True,
        )
    print(f"written to {measure.write('toy', results)}")


if __name__ == "__main__":
    main()
