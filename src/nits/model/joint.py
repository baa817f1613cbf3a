"""NITS: the joint density of D columns, as the product of PNNs whose weights a network hands out.

    ν(x_1 … x_D) = Π_i ν_{θ_i}(x_i),    θ_i = W(x_1 … x_{i−1}, context)                      (15)

A head says what a column is and evaluates ν_{θ_i}; `Reading` makes the features of the columns
before that the weight model W reads; `blocks` cuts rows and columns into parts that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn import functional

from nits import checks
from nits.chunks import slices
from nits.heads import Given, Head, Quantized, real_columns
from nits.heads import description as heads_to_json
from nits.model.blocks import Group, groups, pieces, rows_at_once
from nits.model.density import Density
from nits.model.ends import Ends
from nits.model.reading import Reading
from nits.model.steps import HeadSteps
from nits.pnn.random import Seeded
from nits.weights import ConvSize, Guided, Independent, MaskedMLP, Replay, WeightModel, WindowSize
from nits.weights import description as weights_to_json
from nits.weights.activations import Activation
from nits.weights.allowance import Allowance


class NITS(Density):
    """An exact joint density: a head per column, and a weight model that reads the columns before.

    heads: One per column, or the number of columns if all are real.
    weights: A weight model made for these heads, in the order in which they are modelled.
    order: Columns in the order in which they are modelled; that of the heads by default.

    Its weights are drawn from `generator`, or from a seed; by default from torch's global one.
    """

    _order: Tensor

    def __init__(
        self, heads: Sequence[Head] | int, weights: WeightModel, order: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.heads = real_columns(heads)
        self.weights = weights
        positions = checks.order(order, len(self.heads))
        self.register_buffer("_order", torch.tensor(positions), persistent=False)
        self.ordered = tuple(self.heads[i] for i in positions)
        checks.widths(weights.outputs, tuple(head.weights for head in self.ordered))
        self.ends = Ends(self.ordered)
        self.reading = Reading(self.ordered)
        self.groups = tuple(groups(self.ordered))

    @classmethod
    def independent(cls, heads: Sequence[Head] | int, generator: Seeded = None) -> Self:
        """Returns the coordinate-wise independent model."""
        heads = real_columns(heads)
        sizes = [head.inputs for head in heads], [head.weights for head in heads]
        return cls(heads, Independent(*sizes, generator=generator))

    @classmethod
    def mlp(  # noqa: PLR0913 - what the network has
        cls,
        heads: Sequence[Head] | int,
        hidden: int = 512,
        blocks: int = 4,
        dropout: float = 0.0,
        context: int = 0,
        order: Sequence[int] | None = None,
        activation: Activation = functional.relu,
        guess: bool = False,
        codes: int | None = None,
        generator: Seeded = None,
    ) -> Self:
        """Returns NITS-MLP: a masked residual MLP as the weight model, with a guess (29) or not."""
        heads = real_columns(heads)
        ordered = [heads[i] for i in checks.order(order, len(heads))]
        net: WeightModel = MaskedMLP(
            [head.inputs for head in ordered],
            [head.weights for head in ordered],
            context,
            hidden=hidden,
            blocks=blocks,
            dropout=dropout,
            activation=activation,
            codes=codes,
            generator=generator,
        )
        return cls(heads, Guided(net, ordered) if guess else net, order)

    @classmethod
    def conv(
        cls,
        shape: tuple[int, int, int],
        head: Head | None = None,
        *,
        size: ConvSize | WindowSize | None = None,
        context: int = 0,
        present: Tensor | None = None,
        generator: Seeded = None,
    ) -> Self:
        """Returns NITS-CONV for C × H × W images as rows (`nits.images.to_rows`), 8-bit by default.

        size: Of a `CausalConv`, by default, or of a `CausalWindow`.
        present: Which pixels are modelled, shape (H, W); all by default.
        """
        head = head or Quantized(0.0, 1.0, 256)
        count = shape[0] * (shape[1] * shape[2] if present is None else int(present.sum()))
        sizes = [head.inputs] * count, [head.weights] * count, context
        net = (size or ConvSize()).network(
            *sizes, shape=shape, size=size, present=present, units=head.units, generator=generator
        )
        return cls([head] * count, net)

    @property
    def context_features(self) -> int:
        """C, the number of features of the context; 0 if there is none."""
        return self.weights.context

    @property
    def order(self) -> Tensor:
        """The columns in the order in which they are modelled, shape (D,)."""
        return self._order

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of inputs and outputs."""
        return self.ends.low

    @property
    def weights_per_row(self) -> int:
        """Number of PNN weights evaluated for a row."""
        return sum(self.weights.outputs)

    @property
    def stepped_at_once(self) -> int:
        """Most rows that the weight model's stepper has memory for."""
        return self.weights.sampled_at_once

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term of log ν(x), shape (N, D), columns as in x; 0 if missing."""
        x, context = self._checked(x, context)
        seen = x if withheld is None else x.masked_fill(withheld, torch.nan)
        return self._by_rows(self._log_prob, x, seen, context)

    def _log_prob(self, values: Tensor, seen: Tensor, context: Tensor | None) -> Tensor:
        """Returns the logarithms of the factors of (15), for values in modelling order, (D, N)."""
        factors = self._factors(values, seen, context)
        return torch.cat([head.log_prob(given, x) for head, given, x in factors])

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""
        x, context = self._checked(x, context)
        return self._by_rows(self._to_uniform, x, x, context)

    def _to_uniform(self, values: Tensor, seen: Tensor, context: Tensor | None) -> Tensor:
        factors = self._factors(values, seen, context)
        return torch.cat([head.to_uniform(given, x) for head, given, x in factors])

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        x, context = self._checked(x, context)
        context = None if context is None else context.t()
        theta: Tensor = self.weights(self.reading(x.t()[self.order]), context)
        parts = theta.expand(-1, len(x)).split(self.weights.outputs)
        ends = zip(self.ordered, parts, self.ends.low, self.ends.high, strict=True)
        found = [head.distribution(part.t(), low, high) for head, part, low, high in ends]
        return [found[i] for i in self.order.argsort().tolist()]

    def steps(self, n: int, context: Tensor | None = None) -> HeadSteps:
        """Starts n rows; all columns together cost about one evaluation of the network.

        Where gradients are recorded, each column costs one, which autograd can follow.
        """
        context = None if context is None else context.t()
        if torch.is_grad_enabled():
            return HeadSteps(
                self.ordered, self.ends, self.reading, Replay(self.weights, n, context)
            )
        return HeadSteps(self.ordered, self.ends, self.reading, self.weights.stepper(n, context))

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,), for any weights."""
        values = x.t()[self.order]
        parts = [
            group.head.possible(
                *(t[group.columns] for t in (values, self.ends.low, self.ends.high))
            )
            for group in self.groups
        ]
        missing = torch.isnan(values) & self.optional[self.order].unsqueeze(1)
        return (torch.cat(parts) | missing).all(0)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Puts the knots at quantiles of rows x, shape (N, D), and sets the initial weights."""
        values = x.t()[self.order]
        about = None if context is None else context.t()
        self.reading.start_at(values)
        with torch.no_grad():
            self.weights.start_from(self.ordered, values, self.reading, about)

    def description(self) -> dict[str, Any]:
        """Returns heads, order and the sizes of the weight model, ready for JSON."""
        return {
            "kind": "nits",
            "heads": heads_to_json.described(self.heads),
            "order": self.order.tolist(),
            "weights": weights_to_json.described(self.weights),
        }

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns a model like the one whose `description` this is, if it is allowed so much."""
        heads = heads_to_json.heads_of(about["heads"], allowance.columns(len(about["order"])))
        ordered = [heads[i] for i in checks.order(about["order"], len(heads))]
        weights = weights_to_json.weights_of(about["weights"], ordered, allowance)
        return cls(heads, weights, about["order"])

    def forward(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns `log_prob` without checking the rows, for training."""
        seen = x if withheld is None else x.masked_fill(withheld, torch.nan)
        return self._by_rows(self._log_prob, x, seen, context).sum(-1)

    def _by_rows(
        self, function: Callable[..., Tensor], x: Tensor, seen: Tensor, context: Tensor | None
    ) -> Tensor:
        """Applies a function of columns to all rows, or to chunks where no gradient is recorded."""
        if torch.is_grad_enabled() or not len(x):
            return self._by_columns(function, x, seen, context)
        parts = []
        for some in slices(len(x), rows_at_once(self.weights_per_row * x.element_size())):
            about = None if context is None else context[some]
            parts.append(self._by_columns(function, x[some], seen[some], about))
        return torch.cat(parts)

    def _by_columns(
        self, function: Callable[..., Tensor], x: Tensor, seen: Tensor, context: Tensor | None
    ) -> Tensor:
        """Applies a function of columns in modelling order, shape (D, N), to rows, shape (N, D)."""
        about = None if context is None else context.t()
        found = function(x.t()[self.order], seen.t()[self.order], about)
        return found[self.order.argsort()].t()

    def _factors(
        self, values: Tensor, seen: Tensor, context: Tensor | None
    ) -> Iterator[tuple[Head, Given, Tensor]]:
        """Yields the head, the weights and the values of a few columns at a time."""
        row_bytes = values.shape[1] * values.element_size()
        recorded = torch.is_grad_enabled()
        plan: Sequence[Group] = self.groups if recorded else list(pieces(self.groups, row_bytes))
        sizes = [group.weights for group in plan]
        thetas = self.weights.parts(self.reading(seen), context, sizes)
        for group, theta in zip(plan, thetas, strict=True):
            low, high = self.ends.low[group.columns], self.ends.high[group.columns]
            theta = theta.unflatten(0, (len(low), -1))
            yield group.head, Given(theta, low, high), values[group.columns]
