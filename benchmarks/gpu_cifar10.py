"""Trains NITS-CONV of the paper's size on CIFAR-10 with GPUs, or works out what that would cost.

    python benchmarks/gpu_cifar10.py --cost
        → benchmarks/results/gpu-cost.json
    torchrun --nproc-per-node=8 benchmarks/gpu_cifar10.py --epochs 1000 --checkpoint run.pt
        → benchmarks/results/gpu-cifar10-seed0.json

53 million weights, dropout 0.5, PNNs of 16 × 16. Streams in bfloat16, PNNs in float32; features
are computed again for gradients; images come from pinned memory. Optimizer and averages are those
of PixelCNN++: Adam at 1e-3, 5e-6 less per step, weights averaged with 0.9995. The run itself has
not been made: there was no GPU. The same lines run on a CPU (`tests/test_gpu_script.py`).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from results import write_figures
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from nits import NITS, datasets
from nits.heads import Quantized
from nits.images import to_rows
from nits.weights import SIZES, CausalConv

SHAPE, TRAINING_IMAGES = (3, 32, 32), 50_000


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--cost", action="store_true", help="work out the cost and train nothing")
    add("--tflops", type=float, default=100.0, help="sustained by one GPU, in 10^12 per second")
    add("--size", choices=list(SIZES), default="paper-cifar10")
    add("--epochs", type=int, default=1000)
    add("--batch", type=int, default=16, help="images per GPU")
    add("--rate", type=float, default=1e-3)
    add("--compile", action="store_true", help="have torch.compile make kernels of the streams")
    add("--checkpoint", type=Path, help="file to write after every epoch, and to go on from")
    add("--path", type=Path, help="folder with the images; under NITS_DATA by default")
    add("--seed", type=int, default=0)
    return parser.parse_args(argv)


def built(size: str, seed: int | None = None) -> NITS:
    """Returns the untrained model."""
    pixel = Quantized(0.0, 1.0, 256, (16, 16))
    return NITS.conv(SHAPE, pixel, size=SIZES[size], generator=seed)


def cost(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the operations of the network, counted on tensors without numbers, and GPU hours.

    A gradient costs twice what the value does, and computing features again once more.
    """
    with torch.device("meta"):
        model = built(args.size).requires_grad_(False)
    columns = math.prod(SHAPE)
    with FlopCounterMode(display=False) as counter:
        model.weights(torch.empty(columns, 1, device="meta"))
    forward = counter.get_total_flops()
    per_epoch = 4 * forward * TRAINING_IMAGES
    filters, blocks, *_ = SIZES[args.size]
    features = 2 * blocks * filters * SHAPE[1] * SHAPE[2]
    theta = columns * Quantized(0.0, 1.0, 256, (16, 16)).weights
    return {
        "size": args.size,
        "weights": sum(p.numel() for p in model.parameters()),
        "weights_without_biases_of_pixels": sum(
            p.numel() for n, p in model.named_parameters() if not n.endswith("theta.bias")
        ),
        "forward_gflop_per_image": forward / 1e9,
        "training_gflop_per_image": 4 * forward / 1e9,
        "kept_megabytes_per_image": (2 * features + 3 * 4 * theta) / 1e6,
        "assumed_tflops": args.tflops,
        "gpu_hours_per_epoch": per_epoch / args.tflops / 1e12 / 3600,
        "gpu_hours": args.epochs * per_epoch / args.tflops / 1e12 / 3600,
        "epochs": args.epochs,
    }


def loader(images: Tensor, batch: int, seed: int) -> DataLoader[tuple[Tensor, ...]]:
    """Returns batches of a rank's images in random order, in pinned memory if there is a GPU."""
    several = dist.is_initialized()
    rows = TensorDataset(to_rows(images, dtype=torch.uint8))
    sampler: DistributedSampler[tuple[Tensor, ...]] | None = None
    if several:
        sampler = DistributedSampler(rows, seed=seed)
    return DataLoader(
        rows,
        batch,
        shuffle=sampler is None,
        sampler=sampler,
        drop_last=True,
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator().manual_seed(seed),
    )


def batches(source: DataLoader[tuple[Tensor, ...]], device: torch.device) -> Iterator[Tensor]:
    """Yields batches as float32 on the device; copies overlap with what it computes."""
    for (rows,) in source:
        yield rows.to(device, non_blocking=True).float()


class Run:
    """The model, what trains it, and how far it is."""

    def __init__(self, args: argparse.Namespace, device: torch.device, images: Tensor) -> None:
        model = built(args.size, args.seed)
        model.start_from(to_rows(images[:2000]).float())
        self.model, self.device, self.epoch = model.to(device), device, 0
        weights = self.model.weights
        if isinstance(weights, CausalConv):
            weights.recompute = True
            if args.compile:
                weights.streams = torch.compile(weights.streams)  # type: ignore[method-assign]
        several = dist.is_initialized()
        self.whole: nn.Module = DistributedDataParallel(self.model) if several else self.model
        self.optimizer = torch.optim.Adam(self.model.parameters(), args.rate, (0.95, 0.9995))
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.999995)
        self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(0.9995))

    def train(self, source: DataLoader[tuple[Tensor, ...]]) -> float:
        """Trains for an epoch; returns its mean bits per dimension."""
        self.model.train()
        if isinstance(source.sampler, DistributedSampler):
            source.sampler.set_epoch(self.epoch)
        total, count = torch.zeros((), device=self.device), 0
        for x in batches(source, self.device):
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = -self.whole(x).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.average.update_parameters(self.model)
            total, count = total + loss.detach(), count + 1
        self.epoch += 1
        return float(total) / max(count, 1) / (self.model.columns * math.log(2))

    @torch.no_grad()
    def bits(self, images: Tensor, batch: int) -> float:
        """Returns the exact bits per dimension of images under the averaged weights, in float32."""
        model = self.average.module.eval()
        parts = [model(x.to(self.device).float()) for x in to_rows(images).split(batch)]
        return -float(torch.cat(parts).double().mean()) / (self.model.columns * math.log(2))

    def save(self, place: Path) -> None:
        """Writes all that is needed to go on."""
        parts = ("model", "optimizer", "schedule", "average")
        state = {name: getattr(self, name).state_dict() for name in parts}
        torch.save(state | {"epoch": self.epoch}, place.with_suffix(".part"))
        place.with_suffix(".part").replace(place)

    def resume(self, place: Path) -> None:
        """Goes on from what `save` wrote."""
        state = torch.load(place, map_location=self.device, weights_only=True)
        self.epoch = state.pop("epoch")
        for name, part in state.items():
            getattr(self, name).load_state_dict(part)


def trained(args: argparse.Namespace, train: Tensor, test: Tensor) -> dict[str, Any]:
    """Trains and scores; images are uint8, shape (N, C, H, W)."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    run, begun = Run(args, device, train), time.monotonic()
    if args.checkpoint is not None and args.checkpoint.exists():
        run.resume(args.checkpoint)
    source = loader(train, args.batch, args.seed)
    first, history = not dist.is_initialized() or dist.get_rank() == 0, []
    while run.epoch < args.epochs:
        history.append(run.train(source))
        if first:
            print(f"epoch {run.epoch}: {history[-1]:.4f} bits per dimension", file=sys.stderr)
            if args.checkpoint is not None:
                run.save(args.checkpoint)
    return {
        "epochs": run.epoch,
        "seconds": time.monotonic() - begun,
        "training_bits_per_dim": history,
        "test_bits_per_dim": run.bits(test, args.batch),
    }


def main(argv: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    args = arguments(argv)
    if args.cost:
        print(write_figures("gpu-cost", cost(args)))
        return 0
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    images = datasets.cifar10(args.path)
    found = trained(args, *(torch.from_numpy(part) for part in (images.train, images.test)))
    if not several or dist.get_rank() == 0:
        print(write_figures(f"gpu-cifar10-seed{args.seed}", found))
    if several:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
