"""Random halves of scikit-learn's digits given the other halves: one model, and one for each half.

    python benchmarks/image_halves.py --minutes 3 --masks 3
        → benchmarks/results/image-halves.json

One `NITSImages` learns the joint probability of all pixels. Of each random mask, half of the pixels
are known, and log P(hidden | known) = log P(all) − log P(known), the latter by particles
(`completions`). Beside it stand two models that learned for this mask only, in the same minutes
each: a masked MLP of the hidden pixels, and a window network of them, both with the known pixels as
their context. The one that validation images prefer is what the joint model is held against.
"""

from __future__ import annotations

import argparse
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from results import Record, write_figures
from sklearn.datasets import load_digits
from torch import Tensor

import nits
from nits.heads import Quantized
from nits.images import to_rows
from nits.weights import WindowSize

LEVELS, SHAPE = 17, (1, 8, 8)
TEST, VALIDATION = 300, 150
SIZE = WindowSize(reach=5, hidden=96, blocks=2, dropout=0.1)
BATCH = 64


class Digits(NamedTuple):
    """Rows of pixels, shape (N, 64)."""

    train: Tensor
    validation: Tensor
    test: Tensor


def digits() -> Digits:
    """Returns the images as rows, in a seeded order."""
    images = load_digits().images.astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(images))
    rows = to_rows(torch.from_numpy(images[order]).unsqueeze(1)).float()
    rest = len(rows) - TEST
    return Digits(rows[: rest - VALIDATION], rows[rest - VALIDATION : rest], rows[rest:])


def joint(every: Digits, minutes: float) -> nits.NITSImages:
    """Returns a model of all pixels; it holds out as many images as the others."""
    rows = torch.cat([every.train, every.validation])
    model = nits.NITSImages(
        size=SIZE,
        levels=LEVELS,
        batch_size=BATCH,
        max_minutes=minutes,
        validation_fraction=VALIDATION / len(rows),
        random_state=0,
    )
    return model.fit(pictures(rows))


def pictures(rows: Tensor) -> NDArray[np.uint8]:
    """Returns rows of pixels as images, shape (N, H, W)."""
    found: NDArray[np.uint8] = rows.view(-1, *SHAPE[1:]).numpy().astype(np.uint8)
    return found


def of_mask(every: Digits, known: Tensor, minutes: float, seed: int) -> dict[str, Record]:
    """Returns log P(hidden | known) of test images by models that learned for the mask only."""
    hidden = ~known
    head, count = Quantized(0.0, 1.0, LEVELS, (8, 8)), int(known.sum())
    models: dict[str, tuple[nits.NITS, nits.Recipe]] = {
        "mlp": (
            nits.NITS.mlp(
                [head] * int(hidden.sum()),
                hidden=512,
                blocks=2,
                dropout=0.3,
                context=count,
                generator=seed,
            ),
            nits.Recipe(batch_size=BATCH, learning_rate=2e-3, weight_decay=0.1),
        ),
        "windows": (
            nits.NITS.conv(
                SHAPE,
                head,
                size=SIZE,
                context=count,
                present=hidden.view(SHAPE[1:]),
                generator=seed,
            ),
            nits.Recipe(batch_size=BATCH, learning_rate=3e-3, optimizer=nits.Muon()),
        ),
    }
    parts = [(rows[:, hidden], 2 * rows[:, known] / (LEVELS - 1) - 1) for rows in every]
    found = {}
    for name, (model, recipe) in models.items():
        history = nits.fit(
            model,
            parts[0][0],
            context=parts[0][1],
            validation=nits.Rows(*parts[1]),
            recipe=recipe,
            max_minutes=minutes,
            seed=seed,
            progress=False,
        )
        with torch.no_grad():
            scores = model.eval().log_prob(*parts[2]).double()
        found[name] = {"validation": history.to_dict()["final_validation"], "scores": scores}
    return found


def measured(every: Digits, minutes: float, masks: int, particles: int) -> Record:
    """Returns the log-probabilities of hidden halves by both ways, for each mask."""
    model = joint(every, minutes)
    whole = torch.from_numpy(model.score_samples(pictures(every.test)))
    found = []
    for seed in range(masks):
        source = torch.Generator().manual_seed(seed)
        known = torch.zeros(math.prod(SHAPE), dtype=torch.bool)
        known[torch.randperm(len(known), generator=source)[: len(known) // 2]] = True
        mask = known.view(SHAPE[1:]).numpy()
        told = model.completions(pictures(every.test), mask, seed, particles=particles)
        ours = whole - torch.from_numpy(told.log_prob)
        others = of_mask(every, known, minutes, seed)
        best = max(others, key=lambda name: others[name]["validation"])
        found.append(_mask(ours, others, best, told.ess))
        print(found[-1], flush=True)
    ratio = np.mean([one["joint"] for one in found]) / np.mean([one["mask"] for one in found])
    return {
        "minutes": minutes,
        "particles": particles,
        "images": {name: len(rows) for name, rows in every._asdict().items()},
        "bits_per_dim": model.bits_per_dim(pictures(every.test)),
        "masks": found,
        "joint_over_mask": float(ratio),
    }


def _mask(ours: Tensor, others: dict[str, Record], best: str, ess: Any) -> Record:
    """Returns the mean log-probabilities of one mask, and how far the joint model is ahead."""
    ahead = ours - others[best]["scores"]
    return {
        "joint": float(ours.mean()),
        "mask": float(others[best]["scores"].mean()),
        "model_of_the_mask": best,
        "each": {name: float(one["scores"].mean()) for name, one in others.items()},
        "ahead": float(ahead.mean()),
        "two_standard_errors": 2 * float(ahead.std()) / math.sqrt(len(ahead)),
        "median_effective_sample_size": float(np.median(ess)),
    }


def main() -> None:
    """Trains and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="of each model")
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    every = digits()
    if args.quick:
        args.minutes, args.masks, args.particles = 0.02, 1, 8
        every = every._replace(test=every.test[:20])
    found = measured(every, args.minutes, args.masks, args.particles)
    print(write_figures("image-halves" + "-quick" * args.quick, found))


if __name__ == "__main__":
    main()
