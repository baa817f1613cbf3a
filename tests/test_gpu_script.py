"""The script that would train the paper's model on GPUs: its cost, and its lines on the CPU."""

from pathlib import Path

import gpu_cifar10
import pytest
import torch

from nits.weights import SIZES, ConvSize
from registry import seeded


def test_the_cost_is_that_of_the_paper_size() -> None:
    found = gpu_cifar10.cost(gpu_cifar10.arguments(["--cost", "--tflops", "50"]))
    weights = found["weights_without_biases_of_pixels"]
    assert weights == pytest.approx(53e6, rel=0.1)
    # Two operations for each weight at each of 1,024 pixels: almost all are weights of streams.
    assert found["forward_gflop_per_image"] == pytest.approx(2 * 1024 * weights / 1e9, rel=0.05)
    assert found["gpu_hours_per_epoch"] == pytest.approx(
        50_000 * 4 * found["forward_gflop_per_image"] * 1e9 / 50e12 / 3600
    )


def test_it_trains_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs in one go are two with a break, and bits per dimension fall."""
    monkeypatch.setitem(SIZES, "paper-cifar10", ConvSize(4, 2, (1, 2), 0.1))
    monkeypatch.setattr(gpu_cifar10, "SHAPE", (3, 5, 6))
    smooth = torch.randint(100, 140, (40, 1, 5, 1), generator=seeded(0)).expand(-1, 3, -1, 6)
    images = smooth.to(torch.uint8).contiguous()
    place = tmp_path / "run.pt"
    found = {}
    for epochs in (1, 3):
        argv = ["--epochs", str(epochs), "--batch", "8", "--checkpoint", str(place)]
        found[epochs] = gpu_cifar10.trained(gpu_cifar10.arguments(argv), images, images[:8])
    assert [found[1]["epochs"], found[3]["epochs"]] == [1, 3]
    first, later = found[1]["training_bits_per_dim"], found[3]["training_bits_per_dim"]
    assert len(later) == 2
    assert later[-1] < first[0]
    assert found[3]["test_bits_per_dim"] < 8
