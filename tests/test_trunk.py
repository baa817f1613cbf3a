"""Image networks by our own kernels: layers and their gradients against plain operations."""

import itertools
import re
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nits import NITS, kernels
from nits.heads import Continuous, Quantized
from nits.kernels.native import library, trunk
from nits.weights import CausalConv, ConvSize
from nits.weights.causal_layers import Across, Down
from registry import seeded

pytestmark = pytest.mark.skipif(library.loaded() is None, reason="there is no compiler")

HOLE = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
CLOSE = {torch.float64: 1e-13, torch.float32: 2e-5}


def normal(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    drawn = torch.randn(shape, generator=seeded(seed + sum(shape)), dtype=torch.float64)
    return drawn.to(dtype).requires_grad_(True)


def assert_same(found: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    """The values and all gradients, relative to the largest."""
    weight = torch.randn(expected.shape, generator=seeded(9), dtype=torch.float64).to(expected)
    pairs: Iterable[tuple[Tensor | None, Tensor | None]] = zip(
        [found, *torch.autograd.grad(found, inputs, weight, allow_unused=True)],
        [expected, *torch.autograd.grad(expected, inputs, weight, allow_unused=True)],
        strict=True,
    )
    for mine, theirs in pairs:
        if mine is None or theirs is None:  # as of the first stream if there are no blocks
            assert mine is theirs or (mine is not None and not mine.any())
            continue
        error = (mine - theirs).detach().abs().max()
        assert float(error) <= CLOSE[mine.dtype] * float(theirs.detach().abs().max())


@pytest.mark.parametrize("dtype", list(CLOSE))
@pytest.mark.parametrize("kind", [Down, Across])
@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_convolutions(kind: type[Down] | type[Across], dilation: int, dtype: torch.dtype) -> None:
    """Sizes that tiles and vectors do and do not divide."""
    for n, height, width, inputs, outputs in (
        (2, 5, 7, 5, 3),
        (1, 8, 1, 16, 33),
        (3, 9, 12, 20, 4),
    ):
        layer = kind(inputs, outputs, dilation, generator=seeded(0)).to(dtype)
        x = normal(n, height, width, inputs, dtype=dtype)
        plus = normal(n, height, width, outputs, dtype=dtype)
        found = trunk.convolution(x, layer.weight, layer.bias, dilation, plus)
        expected = layer(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) + plus
        assert_same(found, expected, [x, plus, layer.weight, layer.bias])


@pytest.mark.parametrize("dtype", list(CLOSE))
@pytest.mark.parametrize("features", [1, 7, 32, 49])
def test_layers_of_single_pixels(features: int, dtype: torch.dtype) -> None:
    x, both = normal(3, 5, features, dtype=dtype), normal(3, 5, 2 * features, dtype=dtype)
    assert_same(trunk.signs(x), functional.elu(torch.cat([x, -x], -1)), [x])
    a, b = both.chunk(2, -1)
    assert_same(trunk.gate(x, both), x + a * torch.sigmoid(b), [x, both])
    weight, plus = normal(11, features, dtype=dtype), normal(3, 5, 11, dtype=dtype)
    found = trunk.pointwise(x, weight, plus * 1)
    assert_same(found, x @ weight.t() + plus, [x, weight, plus])


def test_extreme_features() -> None:
    """Large features and zero: no NaN, and the gradient of elu at zero is one."""
    x = torch.tensor([[0.0, -0.0, 1e-20, -1e-20, 200.0, -200.0, 3e38, -3e38]]).requires_grad_(True)
    assert_same(trunk.signs(x), functional.elu(torch.cat([x, -x], -1)), [x])
    both = torch.cat([torch.ones_like(x), x], -1).detach().requires_grad_(True)
    a, b = both.chunk(2, -1)
    assert_same(trunk.gate(x * 0, both), x * 0 + a * torch.sigmoid(b), [both])


MODELS = {
    "channels": lambda: NITS.conv(
        (3, 5, 7), Quantized(0.0, 1.0, 256, (8, 8)), size=ConvSize(5, 3, (1, 2)), generator=0
    ),
    "context, holes": lambda: NITS.conv(
        (2, 3, 3),
        Continuous(hidden=(4,)),
        size=ConvSize(6, 3, (1, 2)),
        present=HOLE,
        context=2,
        generator=0,
    ),
    "hats, dropout": lambda: NITS.conv(
        (1, 4, 4),
        Quantized(0.0, 1.0, 6, (4,), knots=3),
        size=ConvSize(24, 4, (1, 2), 0.5),
        generator=0,
    ),
    "no blocks": lambda: NITS.conv(
        (1, 3, 3), Continuous(hidden=(5, 4)), size=ConvSize(4, 0), context=1, generator=0
    ),
}


@pytest.mark.parametrize(("name", "dtype"), list(itertools.product(MODELS, CLOSE)))
def test_the_whole_network(name: str, dtype: torch.dtype) -> None:
    weights = MODELS[name]().weights.to(dtype)
    assert isinstance(weights, CausalConv)
    with torch.no_grad():
        for k, parameter in enumerate(weights.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=seeded(k)).to(dtype))
        weights.theta.guess.copy_(torch.randn(weights.theta.guess.shape, generator=seeded(1)) * 0.1)
    features = normal(sum(weights.inputs), 4, dtype=dtype)
    context = normal(weights.context, 4, dtype=dtype) if weights.context else None
    inputs = [features, *([] if context is None else [context]), *weights.parameters()]
    found = {}
    for native in (True, False):
        weights.generator = seeded(3)
        with kernels.using(native=native, training=True) as ran:
            found[native] = weights(features, context)
        assert ("native" in ran) == native
    assert_same(found[True], found[False], inputs)


def test_threads_share_the_work() -> None:
    """Gradients of several threads are those of one, and the same each time."""
    layer = Down(8, 8, generator=seeded(0))
    x, before = normal(5, 6, 6, 8, dtype=torch.float32), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3, 3):
            torch.set_num_threads(threads)
            y = trunk.convolution(x, layer.weight, layer.bias, 1)
            found.append(torch.autograd.grad(y.square().sum(), [x, layer.weight]))
    finally:
        torch.set_num_threads(before)
    for one, several, again in zip(*found, strict=True):
        torch.testing.assert_close(several, one, rtol=1e-4, atol=1e-4)
        assert torch.equal(several, again)


def test_kernels_are_left_out_where_they_cannot_serve() -> None:
    """Scores, second derivatives, autocast and other numbers take plain operations."""
    x = torch.zeros(1, 1, 1, 4)
    assert not kernels.trunk(x)  # nobody trains
    with kernels.using(training=True):
        assert kernels.trunk(x)
        assert not kernels.trunk(x.half())
        assert not kernels.trunk(x + 17)
        assert not kernels.trunk(x + torch.nan)
        with torch.no_grad():
            assert not kernels.trunk(x)
        with torch.autocast("cpu", torch.bfloat16):
            assert not kernels.trunk(x)
        with kernels.using(native=False):
            assert not kernels.trunk(x)


def test_scores_while_training_do_not_hear_later_pixels() -> None:
    """The law of causality to the last bit, with the policy of a training run."""
    model = MODELS["channels"]()
    x = torch.randint(256, (4, 105), generator=seeded(0)).float()
    later = x.clone()
    later[:, 60:] = 255 - later[:, 60:]
    with torch.no_grad(), kernels.using(training=True):
        a, b = model.log_prob_per_column(x), model.log_prob_per_column(later)
    assert torch.equal(a[:, :60], b[:, :60])


def test_kernels_refuse_what_does_not_fit() -> None:
    """They read memory by sizes and types, so these are checked before."""
    x, weight = torch.zeros(1, 2, 2, 4), torch.zeros(3, 5)
    message = "features and weights must fit, but have shapes (1, 2, 2, 4) and (3, 5)."
    with pytest.raises(ValueError, match=re.escape(message)):
        trunk.pointwise(x, weight)
    with pytest.raises(ValueError, match="features and weights must fit"):
        trunk.convolution(x, torch.zeros(3, 5, 2, 2), torch.zeros(3), 1)
    with pytest.raises(ValueError, match="features and weights must fit"):
        trunk.gate(x, x)
    with pytest.raises(TypeError, match="all numbers of a network must be"):
        trunk.pointwise(x, torch.zeros(3, 4, dtype=torch.float64))
