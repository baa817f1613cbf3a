"""What the laws ask of a density beside its interface: rows of it, and what its columns can hold.

`nits.model.density.Density` is the interface. Only this module looks behind it: a wrapper of
another density joins the laws once `heads` knows what its columns can hold.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch import Tensor

from nits import NITS, Dequantized
from nits.heads import Atoms, Categorical, Cells, Continuous, Head, Inflated, Integer, Quantized
from nits.model import blocks
from nits.model.density import Density
from nits.weights import WeightModel
from registry import seeded

__all__ = [
    "Density",
    "atoms",
    "cut_small",
    "discrete",
    "double",
    "heads",
    "impossible",
    "like",
    "parts",
    "repeated",
    "sloped",
    "some_context",
    "some_rows",
    "steps",
    "uniforms",
    "values",
]


def parts(density: Density) -> list[NITS]:
    """The models with a weight model of their own that the density is made of."""
    return [module for module in density.modules() if isinstance(module, NITS)]


def heads(density: Density) -> tuple[Head, ...]:
    """What each column can hold, columns as in the rows."""
    if isinstance(density, Dequantized):
        return tuple(Continuous(0.0, 256.0) for _ in density.heads)
    return density.heads


def double(density: Density) -> Density:
    """The same density, computed in float64."""
    return copy.deepcopy(density).double()


def like(density: Density) -> Tensor:
    """A tensor of the density's dtype."""
    return density.like


def some_context(density: Density, n: int, seed: int = 100) -> Tensor | None:
    """Random context rows, if the density reads any."""
    width = density.context_features
    return torch.randn(n, width, generator=seeded(seed)).to(like(density)) if width else None


def some_rows(density: Density, n: int, seed: int = 200) -> tuple[Tensor, Tensor | None]:
    """Rows drawn from the density, and their context."""
    context = some_context(density, n)
    return density.sample(n, context, seed), context


def uniforms(density: Density, n: int, seed: int = 300) -> Tensor:
    u = torch.rand(n, density.columns, generator=seeded(seed), dtype=torch.float64)
    return u.to(like(density))


def repeated(context: Tensor | None, n: int) -> Tensor | None:
    """The context of one row, for n rows."""
    return None if context is None else context.expand(n, -1)


def discrete(density: Density) -> Tensor:
    """Which columns are discrete, shape (D,)."""
    return torch.tensor([values(head) is not None for head in heads(density)])


def values(head: Head) -> Tensor | None:
    """All values of a discrete column, or those near zero if it has no limits; None if real."""
    if isinstance(head, Integer):
        return torch.arange(max(head.least, -4000), min(head.greatest, 4000) + 1).double()
    if isinstance(head, Quantized | Categorical):
        return torch.arange(head.bins if isinstance(head, Quantized) else head.levels).double()
    if isinstance(head, Cells):
        return torch.arange(head.edges.count).double()
    if isinstance(head, Inflated):
        rest = values(head.rest)
        assert rest is not None
        every: Tensor = torch.cat([rest, torch.tensor(head.values).double()]).unique()
        return every
    return None


def sloped(head: Head) -> bool:
    """Whether what is read of a value varies with it, and not with which one it is."""
    if isinstance(head, Inflated):
        return sloped(head.rest)
    return not isinstance(head, Categorical | Cells) or bool(getattr(head, "cycles", ()))


def impossible(head: Head) -> list[float]:
    """Values that the column cannot hold."""
    known = values(head)
    if known is not None:
        return [0.5, torch.inf, -torch.inf] + [1e6] * (len(known) < 4000)
    ends = [head.low, head.high, *atoms(head).tolist()]
    return [min(ends) - 1, max(ends) + 1]


def atoms(head: Head) -> Tensor:
    """The values of a real column that have probabilities of their own."""
    return torch.tensor(head.values if isinstance(head, Atoms) else (), dtype=torch.float64)


def steps(density: Density, x: Tensor, context: Tensor | None) -> Tensor:
    """How far each conditional's distribution function jumps at x, shape (N, D)."""
    with torch.no_grad():
        mass = density.log_prob_per_column(x, context).exp()
    jumps = discrete(density).expand_as(x).clone()
    for i, head in enumerate(heads(density)):
        jumps[:, i] |= torch.isin(x[:, i], atoms(head).to(x))
    return mass * jumps


@contextmanager
def cut_small(density: Density) -> Iterator[None]:
    """Evaluates as few rows and columns at once as there can be."""
    with ExitStack() as stack:
        for limit in ("CHUNK_BYTES", "PIECE_BYTES"):
            stack.enter_context(mock.patch.object(blocks, limit, 1))
        for module in density.modules():
            if isinstance(module, WeightModel):
                stack.enter_context(mock.patch.object(module, "sampled_at_once", 70))
        yield
