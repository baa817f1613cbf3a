"""What starting from the data's quantiles is worth: validation nats along one minute, with and without.

    python benchmarks/start.py [--minutes 1] → benchmarks/results/start.json

The bundled household power rows, the demo's model, the same recipe and seed; the two runs differ
only in where the weights start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import measure
import torch

import nits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from demo import load, support


def run(minutes: float, *, from_data: bool) -> dict[str, Any]:
    """Trains once and returns the validation curve."""
    train, test, _, _ = load()
    torch.manual_seed(0)
    model = nits.NITS.mlp(support(train), hidden=128, blocks=2, dropout=0.1)
    recipe = nits.Recipe(batch_size=512, start_from_data=from_data)
    history = nits.fit(
        model, torch.tensor(train, dtype=torch.float32), max_minutes=minutes, recipe=recipe
    )
    with torch.no_grad():
        log_prob = model.log_prob(torch.tensor(test, dtype=torch.float32))
    log_prob = log_prob[torch.isfinite(log_prob)]
    return {
        "seconds": history.seconds,
        "step": history.step,
        "validation": history.validation,
        "test": float(log_prob.mean()),
        "test_two_standard_errors": float(2 * log_prob.std() / len(log_prob) ** 0.5),
    }


def main() -> None:
    """Runs both, one after the other, and writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    minutes = parser.parse_args().minutes
    results = {
        "minutes": minutes,
        "from quantiles": run(minutes, from_data=True),
        "from random weights": run(minutes, from_data=False),
    }
    for name in ("from quantiles", "from random weights"):
        found = results[name]
        print(f"{name:20s} test {found['test']:.3f} ± {found['test_two_standard_errors']:.3f} nats")
    print(f"written to {measure.write('start', results)}")


if __name__ == "__main__":
    main()
