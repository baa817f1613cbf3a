"""A joint density as a torch.distributions.Distribution of whole rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits.model.density import Density

Size = torch.Size | Sequence[int]
Seed = torch.Generator | int | None
Draw = Callable[[int, Tensor | None, Seed], Tensor]


class Rows(constraints.Constraint):
    """Rows whose every value lies in its column's support: a constraint on the last dimension."""

    event_dim = 1

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = tuple(columns)
        self.is_discrete = any(column.is_discrete for column in self.columns)
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Returns whether rows are possible, shape (*), for rows of shape (*, D)."""
        pairs = zip(self.columns, value.unbind(-1), strict=True)
        return torch.stack([column.check(x) for column, x in pairs], -1).all(-1)


class JointDistribution(Distribution):
    """The distribution of rows under a joint density: event shape (D,), batch shape of the context.

    density: A joint density, such as a `nits.NITS`.
    context: None, or what the density is conditioned on, shape (*batch, C).
    """

    def __init__(self, density: Density, context: Tensor | None = None) -> None:
        self.density = density
        self.context = context
        batch = torch.Size() if context is None else context.shape[:-1]
        super().__init__(batch, torch.Size((density.columns,)), validate_args=False)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The context is a vector of real numbers, if there is one."""
        return {} if self.context is None else {"context": constraints.real_vector}

    @property
    def support(self) -> Any:
        """Rows of possible values, as a constraint."""
        return Rows(self.density.supports())

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples carry gradients: only if those of every column do."""
        return not any(head.discrete for head in self.density.heads)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> JointDistribution:
        """Returns this distribution with its context expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        new = JointDistribution(self.density, _expanded(self.context, shape))
        new._batch_shape = shape
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log ν(x) in nats, shape (*sample, *batch), of x, shape (*sample, *batch, D)."""
        if not isinstance(value, Tensor) or value.shape[-1:] != self.event_shape:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"x must be a tensor of shape (…, {self.event_shape[0]}), one column per head, "
                f"but is {got}; reshape it."
            )
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        rows = value.expand(*shape, -1).reshape(-1, *self.event_shape)
        return self.density.log_prob(rows, self._rows_of_context(shape)).reshape(shape)

    def sample(self, sample_shape: Size = (), generator: Seed = None) -> Tensor:
        """Draws rows, shape (*sample, *batch, D).

        generator: A torch.Generator or a seed; fresh randomness by default.
        """
        return self._drawn(self.density.sample, sample_shape, generator)

    def rsample(self, sample_shape: Size = (), generator: Seed = None) -> Tensor:
        """Draws rows that carry gradients to the weights and the context; see `sample`."""
        if not self.has_rsample:
            raise NotImplementedError(
                "rsample needs continuous columns, but this density has discrete ones, which carry "
                "no gradients; use sample."
            )
        return self._drawn(self.density.rsample, sample_shape, generator)

    def _drawn(self, draw: Draw, sample_shape: Size, generator: Seed) -> Tensor:
        shape = torch.Size(sample_shape) + self.batch_shape
        if not shape.numel():
            return torch.empty(shape + self.event_shape)
        rows = draw(shape.numel(), self._rows_of_context(shape), generator)
        return rows.reshape(shape + self.event_shape)

    def _rows_of_context(self, shape: torch.Size) -> Tensor | None:
        """Returns one row of context for each row of a shape that ends in the batch shape."""
        context = _expanded(self.context, shape)
        return None if context is None else context.reshape(-1, context.shape[-1])


def _expanded(context: Tensor | None, shape: torch.Size) -> Tensor | None:
    return None if context is None else context.expand(*shape, -1)
