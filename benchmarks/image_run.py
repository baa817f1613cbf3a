"""Trains a model of images within some minutes; writes bits per dimension and a grid of samples.

    python benchmarks/image_run.py fashion_mnist --head nits --minutes 60
        → benchmarks/results/images-fashion_mnist-nits-60m-seed0.json

`--head logistics` puts PixelCNN++'s mixture of logistics, a PNN of one hidden layer, on the same
trunk; `--network windows` has a `CausalWindow` in place of the convolutions. Set-up and compiling
count as training; loading the images and scoring them do not.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import models
from models.fitted import Settings
from results import PLOTS, RESULTS, Record, circumstances, portable, write

from nits import NITSImages, datasets
from nits.cli.commands.images import write_png
from nits.images import arrays
from nits.weights import ConvSize, WindowSize

LOADERS = {"fashion_mnist": datasets.fashion_mnist, "cifar10": datasets.cifar10}
HEADS = ("nits", "logistics")
NETWORKS: dict[str, Any] = {"images": ConvSize, "windows": WindowSize}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("dataset", choices=list(LOADERS))
    add("--head", choices=HEADS, default=HEADS[0])
    add("--network", choices=list(NETWORKS), default="images", help="images: convolutions")
    add("--minutes", type=float, required=True, help="for training, set-up included")
    add("--seed", type=int, default=0)
    add("--path", type=Path, help="folder with the images; under NITS_DATA by default")
    add("--test-images", type=int, default=10_000, help="of the test set, to score")
    return parser.parse_args(argv)


def estimator(settings: Settings, args: argparse.Namespace, images: int) -> NITSImages:
    """Returns the untrained model."""
    kind = NETWORKS[args.network]
    chosen = {name: settings[name] for name in kind._fields}
    lists = {name: tuple(value) for name, value in chosen.items() if isinstance(value, list)}
    return NITSImages(
        size=kind(**{**chosen, **lists}),
        pnn=tuple(settings["pnn"]),
        precision=settings.get("precision"),
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        max_minutes=args.minutes,
        validation_fraction=settings["validation_images"] / images,
        random_state=args.seed,
        verbose=True,
    )


def trained(args: argparse.Namespace, plots: Path) -> Record:
    """Trains, scores, and returns everything there is to say."""
    settings = models.settings(args.dataset, args.network, args.head)
    about = circumstances()
    images = LOADERS[args.dataset](args.path)
    train, test = map(arrays.as_given, (images.train, images.test[: args.test_images]))
    begun = time.monotonic()
    model = estimator(settings, args, len(train)).fit(train)
    seconds = time.monotonic() - begun
    per_bit = model.model_.columns * math.log(2)
    bits = -model.score_samples(test) / per_bit
    history = model.history_
    looks = zip(history["seconds"], history["validation"], strict=True)
    place = plots / f"samples-{label(args)}.png"
    write_png(arrays.grid(model.sample(settings["sampled"], random_state=args.seed)), place)
    return {
        **about,
        "images_of": args.dataset,
        "head": args.head,
        "network": args.network,
        "minutes": args.minutes,
        "seed": args.seed,
        "settings": settings,
        "parameters": sum(p.numel() for p in model.model_.parameters()),
        "training_seconds": seconds,
        "epochs": history["epoch"][-1],
        "steps": history["step"][-1],
        "validation_bits_per_dim": model.held_out_,
        "test_bits_per_dim": float(bits.mean()),
        "two_standard_errors": 2 * float(bits.std(ddof=1)) / math.sqrt(len(bits)),
        "test_images": len(bits),
        "samples": portable(str(place)),
        "history": [{"seconds": s, "validation_bits_per_dim": -v / per_bit} for s, v in looks],
    }


def label(args: argparse.Namespace) -> str:
    """Returns what the files of a run are called by."""
    network = "" if args.network == "images" else f"{args.network}-"
    return f"{args.dataset}-{network}{args.head}-{args.minutes:g}m"


def main(argv: list[str] | None = None, results: Path = RESULTS, plots: Path = PLOTS) -> int:
    """Runs the benchmark that the command line asks for."""
    args = arguments(argv)
    try:
        found = trained(args, plots)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write(results / f"images-{label(args)}-seed{args.seed}.json", found)
    bits, errors = found["test_bits_per_dim"], found["two_standard_errors"]
    print(f"test {bits:.4f} ± {errors:.4f} bits per dimension")
    return 0


if __name__ == "__main__":
    sys.exit(main())
