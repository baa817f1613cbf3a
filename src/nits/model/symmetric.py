"""A density averaged over rearrangements of the columns, such as the symmetries of a square.

With P_k the rearrangements and ν₀ a density of columns that are all alike,

    ν(x) = (1/K) Σ_k ν₀(P_k x)                                                               (47)

is an exact density, because P_k keeps volumes. It is a mixture of K orders of the columns by one
network. Rows whose columns lack one of a set that adds up to zero, such as the pixels of a patch
less their mean, are completed, rearranged, and lose the column that then comes last: the
determinant of this is ±1, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks
from nits.model import persistence
from nits.model.density import Density
from nits.model.mixed import log_sum
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.random import another, private_generator
from nits.weights.allowance import Allowance

DRAWING = -2 % 2**32
"""The part of a step's randomness that is the rearrangement of each row."""


class Symmetric(Wrapped):
    """Equation (47). In training each row is rearranged at random, which costs what ν₀ costs.

    density: ν₀, whose columns have one head.
    orders: Of each rearrangement the column that comes first, second, …; K of them.
    balanced: Whether a further column, the last of each order, makes rows add up to zero.

    >>> import nits
    >>> grey, size = nits.heads.Quantized(0.0, 1.0, 4), nits.weights.WindowSize(2, 8, 1)
    >>> inner = nits.NITS.conv((1, 3, 3), grey, size=size)
    >>> model = nits.Symmetric(inner, nits.images.symmetries(3, 3))
    >>> model.sample(2).shape
    torch.Size([2, 9])
    """

    kind = "symmetric"

    orders: Tensor

    def __init__(
        self, density: Density, orders: Sequence[Sequence[int]], *, balanced: bool = False
    ) -> None:
        super().__init__(density)
        self.balanced = balanced
        if len(set(density.heads)) > 1:
            raise ValueError("columns that are rearranged must all have one head, but differ.")
        count = self.columns + balanced
        found = [checks.order(order, count) for order in orders]
        self.register_buffer("orders", torch.tensor(found).view(-1, count), persistent=False)
        if not len(found):
            raise ValueError("orders must have at least one rearrangement, but there is none.")
        self.source: torch.Generator | None = None
        self.part: tuple[int, int] | None = None

    @property
    def order(self) -> Tensor:
        """Raises: each rearrangement has an order of its own."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "a density that is averaged over rearrangements has no order of the columns, "
            "and this needs one; use log_prob, sample, or its density."
        )

    def log_prob(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns log ν(x), equation (47)."""
        x, context = self._checked(x, context)
        every = self._completed(x)
        parts = [self.density.log_prob(self._arranged(every, o), context) for o in self.orders]
        return log_sum(torch.stack(parts)) - torch.tensor(float(len(parts))).log().to(x)

    def forward(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns log ν₀ of rows that are rearranged at random, for training."""
        start, total = self.part or (0, len(x))
        which = torch.randint(len(self.orders), (total,), generator=self.source)
        orders = self.orders[which[start : start + len(x)].to(self.orders.device)]
        found: Tensor = self.density(self._arranged(self._completed(x), orders), context, withheld)
        return found

    def _completed(self, x: Tensor) -> Tensor:
        return torch.cat([x, -x.sum(1, keepdim=True)], 1) if self.balanced else x

    def _arranged(self, every: Tensor, order: Tensor) -> Tensor:
        """Returns rows of all columns in one order, or each in its own, without a further one."""
        order = order.expand(len(every), -1)
        return every.gather(1, order)[:, : self.columns]

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows, shape (n, D), each in a random one of the arrangements."""
        if given is not None:
            self._refuse()
        source = private_generator(generator, self.like.device)
        which = torch.randint(len(self.orders), (n,), generator=source, device=self.like.device)
        rows = self._completed(self.density.sample(n, context, source, quasi=quasi))
        back = self.orders.argsort(1)[which]
        return self._arranged(rows, back)

    def reseed(self, seed: int | None) -> None:
        """Seeds the rearrangements, too."""
        own = None if seed is None else another(seed, DRAWING)
        self.source = None if own is None else torch.Generator().manual_seed(own)
        super().reseed(seed)

    def take_part(self, start: int, total: int | None) -> None:
        """Has rearrangements be those of rows in a larger batch; see `Density.take_part`."""
        self.part = None if total is None else (start, total)
        super().take_part(start, total)

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Raises: there is no order of the columns."""
        self._refuse()

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Raises: there is no order of the columns."""
        self._refuse()

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Raises: there is no order of the columns."""
        self._refuse()

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Raises: there is no order of the columns."""
        self._refuse()

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        every = self._completed(x)
        each = [self.density.possible(self._arranged(every, order)) for order in self.orders]
        return torch.stack(each).any(0)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the weights from which training starts, from rows in all arrangements in turn."""
        every, which = self._completed(x), torch.arange(len(x)) % len(self.orders)
        self.density.start_from(self._arranged(every, self.orders[which]), context)

    def description(self) -> dict[str, Any]:
        """Returns that of the density inside, and the orders."""
        own = {"orders": self.orders.tolist(), "balanced": self.balanced}
        return {**super().description(), **own}

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns one like that whose `description` this is, if it is allowed so much."""
        allowance.take(sum(map(len, about["orders"])))
        inner = persistence.built(about["density"], allowance)
        return cls(inner, about["orders"], balanced=bool(about["balanced"]))
