"""Training rows: checked once, then handed out in shuffled batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nits.chunks import slices
from nits.model.density import Density

Array = Tensor | np.ndarray

CHECK_ROWS = 65536
"""Rows that are checked at once, so that memory-mapped arrays are never loaded whole."""


class Batch(NamedTuple):
    """Rows for one step."""

    x: Tensor
    context: Tensor | None
    weight: Tensor | None


class Feed(Protocol):
    """What hands out the rows of one step after another, or a part of them."""

    def batch(self, step: int, like: Tensor) -> Batch:
        """Returns the rows of a step, as tensors of the dtype and device of `like`."""

    def close(self) -> None:
        """Ends what reads ahead."""


class Rows:
    """N rows with their context and weights, in memory or memory-mapped.

    x: Shape (N, D). context: Shape (N, C). weight: Shape (N,), not negative.
    read: Makes features of the context of a batch, so that they need no memory for all rows; by
        default the context is what the model takes.
    index: Which rows of these arrays, shape (N,); by default all.
    places: Where the rows of x are in the table, if they are not all of it; see `Streamed`.

    >>> import nits, torch
    >>> rows = nits.Rows(torch.randn(100, 2), context=torch.randn(100, 3), weight=torch.rand(100))
    >>> len(rows)
    100
    """

    places: Tensor | None = None

    def __init__(
        self,
        x: Array,
        context: Array | None = None,
        weight: Array | None = None,
        read: Callable[[Tensor], Tensor] | None = None,
        index: Tensor | None = None,
    ) -> None:
        self.x = x
        self.context = context
        self.weight = weight
        self.read = read
        self.index = index

    def __len__(self) -> int:
        return len(self.x) if self.index is None else len(self.index)

    def take(self, index: Tensor, like: Tensor) -> Batch:
        """Returns the rows at an index, as tensors of the dtype and device of `like`."""
        weight = None if self.weight is None else self._taken(self.weight, index).to(like)
        context = self._features(index)
        context = None if context is None else context.to(like)
        return Batch(self._taken(self.x, index).to(like), context, weight)

    def subset(self, index: Tensor) -> Rows:
        """Returns some of the rows, in memory."""
        weight = None if self.weight is None else self._taken(self.weight, index)
        return Rows(self._taken(self.x, index), self._features(index), weight)

    def view(self, index: Any) -> Rows:
        """Returns some of the rows, by their positions, without a copy of them."""
        index = index if self.index is None else self.index[index]
        return Rows(self.x, self.context, self.weight, self.read, index)

    def batches(self, size: int, like: Tensor) -> Iterator[Batch]:
        """Yields all rows in order."""
        for some in slices(len(self), size):
            yield self.take(torch.arange(some.start, some.stop), like)

    def parts(self) -> Iterator[Tensor]:
        """Yields x in order, some rows at a time, in memory."""
        for some in slices(len(self), CHECK_ROWS):
            yield (
                _in_memory(self.x[some]) if self.index is None else _take(self.x, self.index[some])
            )

    def values(self, index: Tensor) -> Tensor:
        """Returns x at an index, in its own dtype."""
        return self._taken(self.x, index)

    @property
    def weights(self) -> Tensor | None:
        """The weights of the rows, shape (N,), in memory."""
        if self.weight is None or self.index is None:
            return None if self.weight is None else torch.as_tensor(self.weight)
        return _take(self.weight, self.index)

    def spread(self, count: int) -> Tensor:
        """Returns the positions of at most `count` rows, evenly spread over their weights."""
        count, weights = min(count, len(self)), self.weights
        if weights is None:
            return torch.linspace(0, len(self) - 1, count, dtype=torch.float64).long()
        total = weights.double().cumsum(0)
        levels = (torch.arange(count, dtype=torch.float64) + 0.5) / count * total[-1].cpu()
        return torch.searchsorted(total.cpu(), levels).clamp(max=len(self) - 1)

    def feed(self, size: int, seed: int, part: slice = slice(None)) -> Feed:
        """Returns what hands out shuffled batches of a size, or of each the same part."""
        return Shuffled(self, size, seed, part)

    def digest(self) -> str:
        """Returns a checksum of the rows, their context and their weights, in their order."""
        found = hashlib.sha256()
        for part in (self.x, self.context, self.weight):
            if part is None:
                found.update(b"none")
                continue
            for some in slices(len(self), CHECK_ROWS):
                taken = self._taken(part, torch.arange(some.start, some.stop)).cpu()
                found.update(f"{taken.dtype} {tuple(taken.shape)}".encode())
                found.update(taken.contiguous().numpy().data)
        return found.hexdigest()

    def _features(self, index: Tensor) -> Tensor | None:
        if self.context is None:
            return None
        context = self._taken(self.context, index)
        return context if self.read is None else self.read(context)

    def _taken(self, part: Array, index: Tensor) -> Tensor:
        return _take(part, index if self.index is None else self.index[index])


def _take(part: Array, index: Tensor) -> Tensor:
    if isinstance(part, Tensor):
        return part[index.to(part.device)]
    return torch.from_numpy(np.ascontiguousarray(part[index.numpy()]))


def checked(model: Density, rows: Rows, name: str = "data") -> Rows:
    """Checks shapes, dtypes and values; raises one sentence that says what to do."""
    x, width = rows.x, model.context_features
    if not isinstance(x, Tensor | np.ndarray) or x.ndim != 2 or x.shape[1] != model.columns:
        got = tuple(x.shape) if isinstance(x, Tensor | np.ndarray) else type(x).__name__
        raise ValueError(
            f"{name} must be a tensor or array of shape (N, {model.columns}), but is {got}; "
            "pass one column per head."
        )
    kind = str(x.dtype).removeprefix("torch.")
    if kind not in ("float32", "float64"):
        raise TypeError(
            f"{name} must be float32 or float64, but is {kind}; convert it, integers too."
        )
    if (width > 0) != (rows.context is not None):
        raise ValueError(
            f"this model takes a context of {width} features, but {name} has none; pass context=."
            if width
            else f"this model takes no context, but {name} has one; leave it out."
        )
    for part, label in ((rows.context, "context"), (rows.weight, "sample_weight")):
        if part is not None and len(part) != len(x):
            raise ValueError(
                f"{label} must have one row per row of {name}, {len(x)}, but has {len(part)}."
            )
    _refuse_nan(model, rows, name)
    return rows


def _in_memory(rows: Array) -> Tensor:
    return rows if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))


def _refuse_nan(model: Density, rows: Rows, name: str) -> None:
    missing = 0
    optional = model.optional.cpu()
    for part in rows.parts():
        part = part.cpu()
        missing += int((~torch.isfinite(part) & ~(torch.isnan(part) & optional)).any(1).sum())
    if missing:
        raise ValueError(
            f"{name} must hold finite values, but {missing} of {len(rows)} rows have NaN or "
            "infinite ones; drop or fill them."
        )


def refuse_degenerate(model: Density, rows: Rows) -> None:
    """Refuses data from which no density follows: a single row, or a constant continuous column."""
    if len(rows) < 2:
        raise ValueError(
            f"data must have at least 2 rows to learn from, but has {len(rows)}; add some."
        )
    sample = thinned(rows, 4096, model.like).x
    for i in range(model.columns):
        column = sample[:, i][~torch.isnan(sample[:, i])]
        constant = bool(len(column)) and bool((column == column[0]).all())
        if constant and model.is_real(i) and _is_constant(rows, i):
            value = float(column[0]) + 0.0
            raise ValueError(
                f"column {i} is constant at {value:g}, where a density would be infinite; drop it."
            )


def _is_constant(rows: Rows, column: int) -> bool:
    seen: set[float] = set()
    for part in rows.parts():
        part = part[:, column]
        seen.update(part[~torch.isnan(part)].unique().tolist())
        if len(seen) > 1:
            return False
    return True


def thinned(rows: Rows, count: int, like: Tensor) -> Batch:
    """Returns at most `count` rows, evenly spread, without weights.

    If rows have weights, each is there in proportion to its weight.
    """
    return rows.take(rows.spread(count), like)._replace(weight=None)


def inside(model: Density, rows: Rows) -> Tensor:
    """Returns which rows lie in the support, shape (N,); at the others the density is zero."""
    parts = [model.possible(part.to(model.like)).cpu() for part in rows.parts()]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.bool)


def split(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows | None]:
    """Returns training and validation rows, drawn at random; None if there are too few of these."""
    if fraction == 0:
        return rows, None
    train, held_out = parted(len(rows), fraction, seed)
    return (rows.view(train), rows.view(held_out)) if len(held_out) else (rows, None)


def parted(count: int, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Returns the positions of the training rows and of the validation rows among all of them.

    Positions are drawn at random; if there are too few rows, all are training rows, in order.
    """
    if not 0 <= fraction < 1:
        raise ValueError(
            f"validation must be rows or a share in [0, 1), but is {fraction}; 0.1 is usual."
        )
    held_out = int(count * fraction)
    if held_out < 1 or count - held_out < 2:
        return torch.arange(count), torch.arange(0)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order[held_out:], order[:held_out]


def shuffled(count: int, seed: int, epoch: int) -> Tensor:
    """Returns the order of the rows in an epoch: a function of the seed and the epoch alone."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))


class Shuffled:
    """Batches of rows in memory, in another order in each epoch.

    part: Of each batch; ranks that train together have one each.
    """

    def __init__(self, rows: Rows, size: int, seed: int, part: slice = slice(None)) -> None:
        self.rows, self.size, self.seed, self.part = rows, size, seed, part
        self.per_epoch = max(1, len(rows) // size)
        self.epoch = -1
        self.order = torch.empty(0)

    def batch(self, step: int, like: Tensor) -> Batch:
        """Returns the rows of a step, or the part of them."""
        return self.rows.take(self.index(step), like)

    def index(self, step: int) -> Tensor:
        """Returns the positions of these rows."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, shuffled(len(self.rows), self.seed, epoch)
        return self.order[position * self.size : (position + 1) * self.size][self.part]

    def close(self) -> None:
        """Has nothing to end."""
