"""The layers of a masked network: a linear one that multiplies no block of zeros, and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nits.pnn.random import Generators
from nits.weights import masks
from nits.weights.masks import Block

MOST_BLOCKS = 8
"""Blocks that a matrix is cut into by default, if it is large."""

BLOCK_WEIGHTS = 2**15
"""Weights of a block on average, zeros and all, if it is not."""

LEVELS = 2**16
"""Values that 16 random bits can take: the probability of dropping is a multiple of 1 / LEVELS."""

_LEAST = -(2**63)
"""The least 64-bit integer: all words from here to the greatest are equally likely."""


class BlockLinear(nn.Module):
    """y = (mask ⊙ W) x + b for x of shape (in, N), with rows and columns of W sorted by rank.

    Masked weights start at zero and their gradient is zero, so they stay zero: the product needs no
    mask, and blocks in which all weights are masked are skipped. W, b and x may have a first
    dimension more: those of several networks, each with its own rows.

    count: Blocks of rows; more skip more zeros, in products too small to be fast. By default it
        follows the size of W.
    """

    weight: nn.Parameter
    bias: nn.Parameter
    row_ranks: Tensor
    column_ranks: Tensor

    def __init__(
        self,
        row_ranks: Tensor,
        column_ranks: Tensor,
        count: int | None = None,
        *,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        entries = len(row_ranks) * len(column_ranks)
        count = count or max(1, min(MOST_BLOCKS, entries // BLOCK_WEIGHTS))
        self.blocks = masks.blocks(row_ranks, column_ranks, count)
        self.register_buffer("row_ranks", row_ranks, persistent=False)
        self.register_buffer("column_ranks", column_ranks, persistent=False)
        for k, b in enumerate(self.blocks):
            stripe = masks.mask(row_ranks[b.start : b.stop], column_ranks[b.before : b.seen])
            self.register_buffer(f"stripe{k}", stripe, persistent=False)
        self.weight = nn.Parameter(torch.zeros(len(row_ranks), len(column_ranks)))
        self.bias = nn.Parameter(torch.zeros(len(row_ranks)))
        self.reset(gain, generator)

    @property
    def mask(self) -> Tensor:
        """Which rows read which columns; in memory are only the stripes of the blocks."""
        return masks.mask(self.row_ranks, self.column_ranks)

    @property
    def stripes(self) -> tuple[Tensor, ...]:
        """The part of the mask that each block multiplies with."""
        return tuple(self.get_buffer(f"stripe{k}") for k in range(len(self.blocks)))

    def reset(self, gain: float, generator: torch.Generator | None = None) -> None:
        """Draws weights with which inputs of variance 1 give outputs of variance gain²."""
        mask = self.mask
        seen = mask.sum(1, keepdim=True).clamp_min(1)
        with torch.no_grad():
            self.weight.normal_(generator=generator).mul_(gain / seen.sqrt()).mul_(mask)
            self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Maps x, shape (in, N), to shape (out, N)."""
        y: Tensor = _BlockProduct.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.bias, self.stripes, self.blocks
        )
        return y

    def parts(self, x: Tensor, sizes: Sequence[int]) -> Iterable[Tensor]:
        """Returns the result in parts of these sizes."""
        y: Tensor = self(x)
        parts: tuple[Tensor, ...] = y.split(list(sizes))
        return parts

    def rows(self, start: int, stop: int, x: Tensor) -> Tensor:
        """Returns rows start … stop of the result; not differentiable."""
        seen = int((self.column_ranks <= self.row_ranks[stop - 1]).sum())
        weight = self.weight[start:stop, :seen]
        return torch.addmm(self.bias[start:stop].unsqueeze(1), weight, x[:seen])

    def dense(self, x: Tensor) -> Tensor:
        """Returns the same by one masked product: what tests and benchmarks compare with."""
        return torch.addmm(self.bias.unsqueeze(1), self.weight * self.mask, x)

    @property
    def multiplied(self) -> int:
        """How many weights lie in blocks that are multiplied."""
        return sum((b.stop - b.start) * b.seen for b in self.blocks)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Loads weights, masked ones as zero; a file may hold the others only, as a vector."""
        name = f"{prefix}weight"
        if name in state_dict and state_dict[name].dim() == 1:
            state_dict[name] = self._unpacked(state_dict[name])
        super()._load_from_state_dict(state_dict, prefix, *rest)
        with torch.no_grad():
            self.weight.mul_(self.mask)

    def _unpacked(self, packed: Tensor) -> Tensor:
        """Returns the matrix of which `packed` has the entries that the mask leaves."""
        mask = self.mask
        if len(packed) != int(mask.sum()):
            raise ValueError(
                f"a masked matrix must have {int(mask.sum())} entries, but has {len(packed)}; "
                "the file does not fit its own description."
            )
        whole = packed.new_zeros(mask.shape)
        whole[mask] = packed
        return whole


class _BlockProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        stripes: tuple[Tensor, ...],
        blocks: tuple[Block, ...],
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stripes, ctx.blocks = stripes, blocks
        y = x.new_empty(*weight.shape[:-1], x.shape[-1])
        for b in blocks:
            rows = slice(b.start, b.stop)
            seen = weight[..., rows, : b.seen], x[..., : b.seen, :]
            _affine(x)(bias[..., rows, None], *seen, out=y[..., rows, :])
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (grad,) = grads
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = _grad_x(grad, x, weight, ctx.blocks)
        if ctx.needs_input_grad[1]:
            grad_weight = _grad_weight(grad, x, ctx.stripes, ctx.blocks)
        return grad_x, grad_weight, grad.sum(-1), None, None


def _affine(x: Tensor) -> Callable[..., Tensor]:
    """Returns what computes W x + b for one network, or for several."""
    return torch.addmm if x.dim() == 2 else torch.baddbmm


def _grad_x(grad: Tensor, x: Tensor, weight: Tensor, blocks: tuple[Block, ...]) -> Tensor:
    """Sums over the blocks of rows; the last reads most columns: it writes, the others add."""
    grad_x = torch.empty_like(x)
    grad_x[..., blocks[-1].seen :, :] = 0
    for beta, b in enumerate(reversed(blocks)):
        rows, part = slice(b.start, b.stop), grad_x[..., : b.seen, :]
        read = weight[..., rows, : b.seen].mT, grad[..., rows, :]
        _affine(x)(part, *read, beta=min(beta, 1), out=part)
    return grad_x


def _grad_weight(
    grad: Tensor, x: Tensor, stripes: tuple[Tensor, ...], blocks: tuple[Block, ...]
) -> Tensor:
    shape = (*grad.shape[:-1], x.shape[-2])
    grad_weight = torch.empty(shape, dtype=x.dtype, device=x.device)
    for b, stripe in zip(blocks, stripes, strict=True):
        rows = slice(b.start, b.stop)
        read = grad[..., rows, :], x[..., : b.seen, :].mT
        torch.matmul(*read, out=grad_weight[..., rows, : b.seen])
        grad_weight[..., rows, b.before : b.seen] *= stripe
        grad_weight[..., rows, b.seen :] = 0
    return grad_weight


def relu_gain(share: float = 1.0) -> float:
    """Returns the gain with which a ReLU keeps the variance, times a share."""
    return math.sqrt(2.0) * share


def dropout(
    x: Tensor,
    probability: float,
    training: bool,
    generator: Generators = None,
    part: tuple[int, int] | None = None,
) -> Tensor:
    """Zeroes entries with this probability, to 16 bits, and scales the rest to keep the mean.

    generator: On the device of x; torch's global one by default.
    part: Of which rows of a larger batch x, shape (h, N), is: the first one, and the size of the
        batch, for all of which numbers are drawn.
    """
    dropped = round(probability * LEVELS)
    if not training or not dropped:
        return x
    if dropped == LEVELS:
        return x * 0
    whole = x if part is None else _as_wide(x, part[1])
    if isinstance(generator, Sequence):
        pairs = zip(whole, generator, strict=True)
        kept = torch.stack([_kept(own, dropped, source) for own, source in pairs])
    else:
        kept = _kept(whole, dropped, generator)
    if part is not None:
        kept = kept[:, part[0] : part[0] + x.shape[-1]]
    return x * kept.mul_(LEVELS / (LEVELS - dropped))


def _as_wide(x: Tensor, rows: int) -> Tensor:
    """Returns an empty tensor of so many rows with the layout of x, shape (h, N)."""
    if x.t().is_contiguous() and not x.is_contiguous():
        return x.new_empty(rows, x.shape[0]).t()
    return x.new_empty(x.shape[0], rows)


def _kept(x: Tensor, dropped: int, generator: torch.Generator | None) -> Tensor:
    """Returns 0 for entries to drop and 1 for others, in the layout of x.

    On a CPU four of them are made from a random word.
    """
    if x.device.type != "cpu":
        return torch.empty_like(x).bernoulli_(1 - dropped / LEVELS, generator=generator)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    level = words.random_(_LEAST, None, generator=generator).view(torch.int16)
    layout = torch.empty_like(x, device="meta").stride()
    return (level.as_strided(x.shape, layout) >= dropped - LEVELS // 2).to(x.dtype)
