"""Trains NITS-CONV on images within some minutes, and writes bits per dimension and a grid of samples.

    python benchmarks/image_run.py fashion_mnist --head nits --minutes 60
        → benchmarks/results/images-fashion_mnist-nits-60m-seed0.json

`--head logistics` puts PixelCNN++'s mixture of logistics, a PNN of one hidden layer, on the same
trunk. Set-up and compiling count as training; loading the images and scoring them do not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import measure
import models

from nits import NITSImages, datasets
from nits.cli.commands.pictures import write_png
from nits.images import arrays
from nits.weights import ConvSize

SETTINGS = models.SETTINGS / "images"
LOADERS = {
    "fashion_mnist": datasets.fashion_mnist,
    "cifar10": datasets.cifar10,
    "mnist": datasets.mnist,
}
OUT = measure.ROOT / "out" / "benchmarks"
PLOTS = measure.ROOT / "docs" / "images"


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=sorted(path.stem for path in SETTINGS.glob("*.toml")))
    parser.add_argument("--head", default="nits", help="one of those that the settings name")
    parser.add_argument(
        "--minutes", type=float, required=True, help="for training, set-up included"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--path", type=Path, help="folder with the images; under NITS_DATA by default"
    )
    parser.add_argument("--test-images", type=int, default=10_000, help="of the test set, to score")
    return parser.parse_args(argv)


def settings(dataset: str, head: str) -> dict[str, Any]:
    """Returns the settings of a data set with the PNN of a head."""
    found = tomllib.loads((SETTINGS / f"{dataset}.toml").read_text(encoding="utf-8"))
    heads = found.pop("heads")
    if head not in heads:
        raise ValueError(f"--head must be one of {', '.join(heads)}, but is {head}.")
    return {**found, "pnn": heads[head]}


def estimator(chosen: dict[str, Any], args: argparse.Namespace, images: int) -> NITSImages:
    """Returns the untrained model; its checkpoints go under out/."""
    names = ("filters", "blocks", "dilations", "dropout")
    filters, blocks, dilations, dropout = (chosen[name] for name in names)
    OUT.mkdir(parents=True, exist_ok=True)
    return NITSImages(
        size=ConvSize(filters, blocks, tuple(dilations), dropout),
        pnn=tuple(chosen["pnn"]),
        batch_size=chosen["batch_size"],
        learning_rate=chosen["learning_rate"],
        max_minutes=args.minutes,
        validation_fraction=chosen["validation_images"] / images,
        checkpoint=OUT
        / f"{args.dataset}-{args.head}-{args.minutes:g}m-seed{args.seed}.safetensors",
        random_state=args.seed,
        verbose=True,
    )


def record(args: argparse.Namespace) -> dict[str, Any]:
    """Trains, scores, and returns everything there is to say."""
    chosen = settings(args.dataset, args.head)
    circumstances = measure.circumstances()
    images = LOADERS[args.dataset](args.path)
    train, test = map(arrays.as_given, (images.train, images.test[: args.test_images]))
    model = estimator(chosen, args, len(train))
    begun = time.monotonic()
    model.fit(train)
    seconds = time.monotonic() - begun
    model.save(OUT / f"{args.dataset}-{args.head}-{args.minutes:g}m-seed{args.seed}.nits")
    per_bit = model.model_.columns * math.log(2)
    bits = -model.score_samples(test) / per_bit
    history = model.history_
    return {
        **circumstances,
        "images_of": args.dataset,
        "head": args.head,
        "minutes": args.minutes,
        "seed": args.seed,
        "settings": chosen,
        "parameters": sum(p.numel() for p in model.model_.parameters()),
        "training_seconds": seconds,
        "epochs": history["epoch"][-1],
        "steps": history["step"][-1],
        "validation_bits_per_dim": model.held_out_,
        "test_bits_per_dim": float(bits.mean()),
        "two_standard_errors": 2 * float(bits.std(ddof=1)) / math.sqrt(len(bits)),
        "test_images": len(bits),
        "samples": _grid(model, chosen["sampled"], args),
        "history": [
            {"seconds": s, "validation_bits_per_dim": -v / per_bit}
            for s, v in zip(history["seconds"], history["validation"], strict=True)
        ],
    }


def _grid(model: NITSImages, count: int, args: argparse.Namespace) -> str:
    """Writes a grid of samples, and returns where."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    place = PLOTS / f"samples-{args.dataset}-{args.head}-{args.minutes:g}m.png"
    write_png(arrays.grid(model.sample(count, random_state=args.seed)), place)
    return (
        str(place.relative_to(measure.ROOT)) if place.is_relative_to(measure.ROOT) else str(place)
    )


def main(argv: list[str] | None = None, results: Path = measure.RESULTS) -> int:
    """Runs the benchmark that the command line asks for."""
    args = arguments(argv)
    try:
        found = record(args)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = results / f"images-{args.dataset}-{args.head}-{args.minutes:g}m-seed{args.seed}.json"
    path.write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    print(
        f"test {found['test_bits_per_dim']:.4f} ± {found['two_standard_errors']:.4f} bits per dimension"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
