"""What training on GPUs needs, tried without one: precision, ranks, graphs, memory, sizes."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nits import NITS, kernels
from nits.heads import Quantized
from nits.weights import SIZES, CausalConv, ConvSize
from registry import seeded

SHAPE = (2, 4, 5)


def model(dropout: float = 0.0) -> NITS:
    size = ConvSize(6, 4, (1, 2), dropout)
    return NITS.conv(SHAPE, Quantized(0.0, 1.0, 4, (4, 3)), size=size, generator=0)


def images(n: int = 6) -> Tensor:
    return torch.randint(4, (n, 40), generator=seeded(1)).float()


def gradients(net: NITS, x: Tensor) -> list[Tensor]:
    loss = -net(x).mean()
    return list(torch.autograd.grad(loss, list(net.parameters())))


def test_streams_have_the_precision_of_autocast_and_pnns_do_not() -> None:
    """Probabilities of four levels add up to one in float32 digits; the weights are near."""
    net, x = model(), images()
    levels = x.repeat_interleave(4, 0)
    levels[:, -1] = torch.arange(4.0).repeat(len(x))
    with torch.no_grad():
        plain = net.log_prob_per_column(levels)
        with torch.autocast("cpu", torch.bfloat16):
            found = net.log_prob_per_column(levels)
    assert found.dtype == torch.float32
    total = found[:, -1].exp().view(-1, 4).sum(1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=3e-6)
    assert 0 < float((found - plain).abs().max()) < 0.1
    with torch.autocast("cpu", torch.bfloat16):
        assert all(bool(torch.isfinite(g).all()) for g in gradients(net, x))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_what_is_computed_again_is_the_same(dropout: float) -> None:
    """Gradients to the last bit, with dropout from a generator of its own, and fewer kept."""
    found, kept = [], []
    for recompute in (False, True):
        net = model(dropout).train()
        assert isinstance(net.weights, CausalConv)
        net.weights.recompute = recompute
        net.weights.generator = seeded(5)
        sizes: list[int] = []

        def keep(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with (
            kernels.using(native=False),
            torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t),
        ):
            loss = -net(images()).mean()
            kept.append(sum(sizes))
            found.append(torch.autograd.grad(loss, list(net.parameters())))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert kept[1] < 0.75 * kept[0]


def test_the_network_is_one_graph() -> None:
    """torch.compile captures the whole of it, without a break, and gives the same."""
    net = model()
    features = torch.randn(40, 6, generator=seeded(2))
    compiled = torch.compile(net.weights, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(features), net.weights(features))


@pytest.mark.parametrize(("name", "millions"), [("paper-cifar10", 53), ("paper-bsds300", 3.8)])
def test_the_papers_sizes_without_memory(name: str, millions: float) -> None:
    """Shapes and gradients of the large models on the `meta` device."""
    with torch.device("meta"):
        pixel = Quantized(0.0, 1.0, 256, (16, 16))
        net = NITS.conv((3, 32, 32), pixel, size=SIZES[name])
    weights = sum(p.numel() for n, p in net.named_parameters() if not n.endswith("theta.bias"))
    assert weights == pytest.approx(millions * 1e6, rel=0.1)
    theta = net.weights(torch.empty(3072, 2, device="meta"))
    assert theta.shape == (3072 * pixel.weights, 2)
    theta.sum().backward()
    assert all(p.grad is not None and p.grad.is_meta for p in net.parameters())


DISTRIBUTED = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path[:0] = sys.argv[1:2]
from test_gpu_ready import images, model
from nits import kernels

torch.set_num_threads(1)
dist.init_process_group("gloo")
net, rank = model(), dist.get_rank()
whole = DistributedDataParallel(net)
with kernels.using(training=True) as ran:
    (-whole(images()[3 * rank : 3 * rank + 3]).mean()).backward()
assert "native" in ran or "plain" in ran
if rank == 0:
    torch.save([p.grad for p in net.parameters()], sys.argv[2])
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_forward_under_ddp(tmp_path: Path) -> None:
    """Two processes with three images each have the gradient of one with six."""
    program, out = tmp_path / "ddp.py", tmp_path / "gradients.pt"
    program.write_text(DISTRIBUTED)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*command, program, Path(__file__).parent, out], check=True, timeout=120)
    for found, expected in zip(torch.load(out), gradients(model(), images()), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
