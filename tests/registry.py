"""Small models with random weights, by name: every law of `laws` is run on each of them.

A new weight model joins by adding an entry. Weights are seeded, θ is of order one and no bias stays
at zero.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from nits import NITS, Dequantized, Mixture, RandomRoles, Roles, Tempered, Whitened
from nits.heads import (
    Atoms,
    Categorical,
    Cells,
    Continuous,
    CurvedEdges,
    Cycle,
    Head,
    Inflated,
    Integer,
    ListedEdges,
    Quantized,
)
from nits.model.calibrated import BUMPS, Calibrated
from nits.model.density import Density
from nits.pnn.curves import Asinh, Log
from nits.weights import CausalWindow, ConvSize, Guided, WindowSize

D = TypeVar("D", bound=Density)

SMALL = (6, 5)


def seeded(seed: int) -> torch.Generator:
    """A generator of its own for every test."""
    return torch.Generator().manual_seed(seed)


def randomized(make: Callable[[], D], seed: int, scale: float = 0.2) -> D:
    """Builds a model from a seed, without the global generator, and moves its biases off zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
    generator = seeded(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "theta")):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
            if name.endswith(("last.weight", "theta.weight")):
                parameter.mul_(scale)
    return model.eval()


def real(count: int, hidden: tuple[int, ...] = SMALL) -> list[Head]:
    return [Continuous(hidden=hidden) for _ in range(count)]


def mixed_supports() -> list[Head]:
    """Finite, half-infinite both ways, and infinite; 0.1 is no float32 number."""
    ends = [(0.1, 0.9), (0.1, math.inf), (-math.inf, 2.0), (-math.inf, math.inf), (-3.0, 5.0)]
    return [Continuous(low, high, SMALL) for low, high in ends]


def mixed_kinds() -> list[Head]:
    """Continuous and quantized columns, and quantized ones of two kinds."""
    return [
        Continuous(hidden=SMALL),
        Quantized(-2.0, 2.0, 5, SMALL),
        Quantized(-1.0, 1.0, 5, SMALL),
        Continuous(0.0, 1.0, SMALL),
        Quantized(0.0, 1.0, 12, (4,)),
    ]


def with_knots() -> list[Head]:
    """Columns of which hats are read, and one of which none are."""
    return [
        Continuous(hidden=SMALL, knots=5),
        Continuous(-1.0, 2.0, SMALL, knots=5),
        Quantized(-2.0, 2.0, 5, SMALL, knots=3),
        Continuous(hidden=SMALL),
    ]


def kinds_of_tables() -> list[Head]:
    """Everything that a table may hold, with and without missing values."""
    return [
        Continuous(hidden=SMALL, knots=3, optional=True),
        Categorical(3, optional=True),
        Integer(hidden=SMALL, shift=2.0, scale=3.0, knots=3),
        Atoms((0.0, 0.5), -2.0, 2.0, SMALL, knots=3, optional=True),
        Integer(0, 9, shift=4.0, scale=2.0, hidden=SMALL, optional=True),
        Categorical(2),
    ]


def decided_columns() -> list[Head]:
    """Cells, listed and along curves; values with more probability, inside and outside; cycles."""
    weekday, hour = Cycle(1 / 7, 0.2), Cycle(0.8, 0.1, harmonics=2)
    skewed = Cells(CurvedEdges(12, Log(-1.0, 1, 1.5, 0.8)), SMALL, knots=3, cycles=(weekday,))
    return [
        Cells(ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0)), SMALL, knots=3),
        Inflated(skewed, (-2, 4)),
        Atoms((-2.5, 0.5), -2.0, 2.0, SMALL, cycles=(hour,)),
        Inflated(Integer(hidden=SMALL, shift=2.0, scale=3.0), (0, 3), optional=True),
        Continuous(0.0, 1.0, SMALL, knots=3, optional=True, cycles=(hour, weekday)),
        Cells(CurvedEdges(9, Asinh(4.0, 1.5, 1.0)), SMALL, optional=True),
    ]


def conv(
    shape: tuple[int, int, int], head: Head, context: int = 0, present: Tensor | None = None
) -> NITS:
    """A small causal convolutional model."""
    size = ConvSize(filters=5, blocks=2, dilations=(1, 2))
    return NITS.conv(shape, head, size=size, context=context, present=present)


def window(
    shape: tuple[int, int, int], head: Head, context: int = 0, present: Tensor | None = None
) -> NITS:
    """A network on windows, with predictions and scales as if it had seen images."""
    size = WindowSize(reach=2, hidden=9, blocks=2)
    model = NITS.conv(shape, head, size=size, context=context, present=present)
    if isinstance(model.weights, CausalWindow):
        local = model.weights.local
        for buffer in (local.lines, local.chain):
            buffer.copy_(torch.randn(buffer.shape) * 0.3)
        local.spread.copy_(0.8 + 0.4 * torch.rand(local.spread.shape))
    return model


def mlp(heads: list[Head] | int, context: int = 0, order: list[int] | None = None) -> NITS:
    return NITS.mlp(heads, hidden=21, blocks=2, context=context, order=order)


def guided(context: int = 0) -> NITS:
    """Columns of several kinds, of which units follow a straight-line guess."""
    heads = [
        Continuous(hidden=(6,), knots=3, optional=True),
        Categorical(3),
        Atoms((0.0, 0.5), -2.0, 2.0, (6,), knots=3),
        Inflated(Cells(ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0)), (5,), knots=3), (-1, 2)),
        Integer(0, 9, shift=4.0, scale=2.0, hidden=(6,)),
    ]
    model = NITS.mlp(heads, hidden=21, blocks=2, context=context, order=[1, 0, 3, 4, 2], guess=True)
    if isinstance(model.weights, Guided):
        for line, before in zip(model.weights.coefficients, model.weights.before, strict=False):
            line[: context + before] = torch.randn(context + before) * 0.5
    return model


def whitened(heads: list[Head] | int, context: int = 0, order: list[int] | None = None) -> Density:
    """A model of correlated columns."""
    model = Whitened(mlp(heads, context, order))
    mix = torch.eye(model.columns) + 0.25 * torch.randn(model.columns, model.columns)
    model.follow(torch.randn(100, model.columns) @ mix + 0.3)
    return model


def mixture(make: Callable[[], Density], weights: list[float]) -> Density:
    """Members alike but for their weights."""
    return Mixture([make() for _ in weights], weights)


def tempered(make: Callable[[], Density], weights: list[float], power: float = 0.4) -> Density:
    """Members alike but for their weights, which columns tell less about."""
    return Tempered([make() for _ in weights], weights, power)


def calibrated(density: Density) -> Density:
    """A model with curves of its own for all columns but the first."""
    logits = torch.randn(density.columns, BUMPS)
    logits[0] = 0.0
    return Calibrated(density, logits)


def roles(heads: list[Head], context: int = 0, order: list[int] | None = None) -> RandomRoles:
    """A network for any question; as a density, that of all columns with nothing given."""
    return RandomRoles(Roles.mlp(heads, hidden=21, blocks=2, context=context, order=order))


def dequantized(shape: tuple[int, int, int]) -> Density:
    """Noisy pixels."""
    return Dequantized(conv(shape, Continuous(0.0, 1.0, SMALL)), seed=0)


MODELS: dict[str, Callable[[], Density]] = {
    "independent": lambda: randomized(lambda: NITS.independent(mixed_kinds()), 1),
    "mlp": lambda: randomized(lambda: mlp(real(4)), 2),
    "mlp-paper-heads": lambda: randomized(lambda: mlp(2), 3),
    "mlp-one-column": lambda: randomized(lambda: mlp(real(1)), 4),
    "mlp-context": lambda: randomized(lambda: mlp(real(3), context=3), 5),
    "mlp-one-column-context": lambda: randomized(lambda: mlp(real(1), context=2), 6),
    "mlp-permuted": lambda: randomized(lambda: mlp(mixed_supports(), order=[3, 0, 4, 2, 1]), 7),
    "mlp-supports": lambda: randomized(lambda: mlp(mixed_supports()), 8),
    "mlp-quantized": lambda: randomized(lambda: mlp(mixed_kinds(), order=[4, 1, 0, 3, 2]), 9),
    "mlp-knots": lambda: randomized(lambda: mlp(with_knots(), order=[2, 1, 0, 3]), 12),
    "mlp-tables": lambda: randomized(lambda: mlp(kinds_of_tables(), order=[1, 0, 2, 5, 4, 3]), 13),
    "independent-tables": lambda: randomized(lambda: NITS.independent(kinds_of_tables()), 14),
    "mlp-cells": lambda: randomized(lambda: mlp(decided_columns(), order=[1, 0, 3, 4, 2, 5]), 27),
    "mlp-codes": lambda: randomized(
        lambda: NITS.mlp(decided_columns(), hidden=21, blocks=1, order=[1, 0, 3, 4, 2, 5], codes=3),
        30,
    ),
    "independent-cells": lambda: randomized(lambda: NITS.independent(decided_columns()), 28),
    "mixture-cells": lambda: randomized(
        lambda: mixture(lambda: mlp(decided_columns()[1:4], order=[1, 2, 0]), [2, 1]), 29
    ),
    "guided": lambda: randomized(guided, 30),
    "guided-context": lambda: randomized(lambda: guided(2), 31),
    "conv": lambda: randomized(lambda: conv((1, 2, 3), Continuous(hidden=SMALL)), 15),
    "conv-channels": lambda: randomized(
        lambda: conv((2, 2, 2), Quantized(0.0, 1.0, 6, SMALL, knots=3)), 16
    ),
    "conv-context": lambda: randomized(
        lambda: conv((1, 2, 2), Continuous(-2.0, 2.0, SMALL), context=2), 17
    ),
    "conv-present": lambda: randomized(
        lambda: conv(
            (1, 3, 2), Continuous(hidden=SMALL), present=torch.tensor([[1, 1], [0, 1], [1, 0]])
        ),
        18,
    ),
    "window": lambda: randomized(lambda: window((1, 2, 3), Continuous(hidden=SMALL)), 37),
    "window-channels": lambda: randomized(
        lambda: window((2, 2, 2), Quantized(0.0, 1.0, 6, SMALL, knots=3)), 38
    ),
    "window-context": lambda: randomized(
        lambda: window((1, 2, 2), Continuous(-2.0, 2.0, SMALL), context=2), 39
    ),
    "window-present": lambda: randomized(
        lambda: window(
            (1, 3, 2), Continuous(hidden=SMALL), present=torch.tensor([[1, 1], [0, 1], [1, 0]])
        ),
        40,
    ),
    "whitened": lambda: randomized(lambda: whitened(real(3)), 19),
    "whitened-context": lambda: randomized(lambda: whitened(real(4), 2, [2, 0, 3, 1]), 21),
    "mixture": lambda: randomized(lambda: mixture(lambda: mlp(real(3)), [0.7, 0.3]), 22),
    "mixture-tables": lambda: randomized(
        lambda: mixture(lambda: mlp(kinds_of_tables(), order=[1, 0, 2, 5, 4, 3]), [1, 2]), 23
    ),
    "mixture-context": lambda: randomized(
        lambda: mixture(lambda: mlp(mixed_supports(), context=2, order=[3, 0, 4, 2, 1]), [1, 1]), 24
    ),
    "mixture-whitened": lambda: randomized(
        lambda: mixture(lambda: whitened(real(3), order=[2, 0, 1]), [1, 3]), 25
    ),
    "calibrated": lambda: randomized(lambda: calibrated(mlp(mixed_supports(), context=2)), 35),
    "calibrated-tables": lambda: randomized(
        lambda: calibrated(
            mixture(
                lambda: mlp([*decided_columns()[3:], Categorical(3)], order=[3, 0, 2, 1]), [2, 1]
            )
        ),
        36,
    ),
    "tempered": lambda: randomized(
        lambda: tempered(lambda: mlp(real(3), order=[1, 2, 0]), [0.7, 0.3]), 41
    ),
    "tempered-tables": lambda: randomized(
        lambda: tempered(
            lambda: mlp(kinds_of_tables(), context=2, order=[1, 0, 2, 5, 4, 3]), [1, 2], 0.0
        ),
        42,
    ),
    "dequantized": lambda: randomized(lambda: dequantized((1, 2, 2)), 26),
    "roles": lambda: randomized(lambda: roles(kinds_of_tables(), order=[1, 0, 2, 5, 4, 3]), 34),
    "roles-context": lambda: randomized(lambda: roles(with_knots(), context=2), 35),
    "mlp-three-layer-pnn": lambda: randomized(lambda: mlp(real(3, (5, 4, 3))), 33),
    "mlp-one-layer-pnn": lambda: randomized(lambda: mlp(real(3, (7,))), 11),
}
