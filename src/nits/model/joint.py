"""NITS: the joint density of D columns, as the product of PNNs whose weights a network hands out.

ν(x_1 … x_D) = Π_i ν_{θ_i}(x_i),    θ_i = W(x_1 … x_{i−1}, context)                      (15)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn import functional

from nits import checks
from nits.heads import PLAIN, Given, Head, Kernels, Quantized, real_columns
from nits.model.blocks import Run, pieces, rows_at_once, runs
from nits.model.reading import Reading
from nits.pnn.distributions import private_generator, quasi_uniform, uniform
from nits.weights import CausalConv, ConvSize, Independent, MaskedMLP, WeightModel
from nits.weights.activations import Activation


class NITS(nn.Module):
    """An exact joint density: one head per column, and a weight model that reads the columns before.

    heads: One per column, or an int for that many real columns.
    weights: A weight model made for these heads, in the order in which they are modelled.
    order: Columns in the order in which they are modelled; as given by default.
    """

    low: Tensor
    high: Tensor
    order: Tensor
    optional: Tensor

    def __init__(
        self, heads: Sequence[Head] | int, weights: WeightModel, order: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.heads = real_columns(heads)
        self.weights = weights
        positions = checks.order(order, len(self.heads))
        self.ordered = tuple(self.heads[i] for i in positions)
        checks.widths(weights.outputs, tuple(head.weights for head in self.ordered))
        self.reading = Reading(self.ordered)
        self.compiled = self.native = False
        self.register_buffer("order", torch.tensor(positions), persistent=False)
        optional = torch.tensor([[head.optional] for head in self.ordered])
        self.register_buffer("optional", optional, persistent=False)
        for name in ("low", "high"):
            self.register_buffer(name, torch.empty(0), persistent=False)
        self._set_ends()
        self.runs = tuple(runs(self.ordered))

    def _set_ends(self) -> None:
        """Sets the buffers `low` and `high`, shapes (D, 1), in the dtype they have."""
        for name in ("low", "high"):
            old: Tensor = getattr(self, name)
            ends = [[float(getattr(head, name))] for head in self.ordered]
            setattr(self, name, torch.tensor(ends, dtype=old.dtype, device=old.device))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves and converts as modules do; the ends keep all digits that the new dtype has."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._set_ends()
        return self

    @classmethod
    def independent(cls, heads: Sequence[Head] | int) -> Self:
        """Returns the coordinate-wise independent model."""
        heads = real_columns(heads)
        return cls(heads, Independent([h.inputs for h in heads], [h.weights for h in heads]))

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
    ) -> Self:
        """Returns NITS-MLP: a masked residual MLP as the weight model."""
        heads = real_columns(heads)
        ordered = [heads[i] for i in checks.order(order, len(heads))]
        sizes = [h.inputs for h in ordered], [h.weights for h in ordered]
        net = MaskedMLP(
            *sizes, context, hidden=hidden, blocks=blocks, dropout=dropout, activation=activation
        )
        return cls(heads, net, order)

    @classmethod
    def conv(
        cls,
        shape: tuple[int, int, int],
        head: Head | None = None,
        *,
        size: ConvSize | None = None,
        context: int = 0,
        present: Tensor | None = None,
    ) -> Self:
        """Returns NITS-CONV for images of C × H × W, as rows that `nits.images` makes; 8-bit by default.

        present: Which pixels there are, shape (H, W), if not all.
        """
        head = head or Quantized(0.0, 1.0, 256)
        count = shape[0] * (shape[1] * shape[2] if present is None else int(present.sum()))
        sizes = [head.inputs] * count, [head.weights] * count
        weights = CausalConv(
            *sizes, context, shape=shape, size=size, present=present, units=head.units
        )
        return cls([head] * count, weights)

    @property
    def columns(self) -> int:
        """D, the number of columns."""
        return len(self.heads)

    def log_prob(
        self, x: Tensor, context: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Returns log ν(x) in nats for rows x, shape (N, D): −inf outside the support, NaN for NaN.

        A value of an optional column may be missing, NaN: the density is then that of the others.
        hidden: Entries of optional columns, shape (N, D), that later columns are to take for
            missing.
        """
        return self.log_prob_per_column(x, context, hidden).sum(-1)

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Returns each column's share of log ν(x), shape (N, D), columns as in x; 0 where it is missing."""
        x, context = self._checked(x, context)
        seen = x if hidden is None else x.masked_fill(hidden, torch.nan)
        chunks = zip(self._chunks(x, None), self._chunks(seen, context), strict=True)
        parts = [self._log_prob(x, *chunk) for (x, _), chunk in chunks]
        return torch.cat(parts)[:, self.order.argsort()]

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of every column given the columns modelled before it, N rows each."""
        x, context = self._checked(x, context)
        context = None if context is None else context.t()
        theta = self._theta(x.t()[self.order], context).expand(-1, len(x))
        parts = theta.split([head.weights for head in self.ordered])
        ends = zip(self.ordered, parts, self.low, self.high, strict=True)
        found = [head.distribution(part.t(), low, high) for head, part, low, high in ends]
        return [found[i] for i in self.order.argsort().tolist()]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns u, shape (N, D), with u_i = P(X_i ≤ x_i | columns before): the Rosenblatt transform."""
        x, context = self._checked(x, context)
        chunks = [self._to_uniform(*chunk) for chunk in self._chunks(x, context)]
        return torch.cat(chunks)[:, self.order.argsort()]

    def from_uniform(self, u: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns x with to_uniform(x) = u; if u requires gradients they flow, for D evaluations."""
        u, context = self._checked(checks.probability(checks.real("u", u)), context)
        return self._inverse(
            u, context, torch.full_like(u, torch.nan), differentiable=u.requires_grad
        )

    def _inverse(
        self, u: Tensor, context: Tensor | None, kept: Tensor, *, differentiable: bool
    ) -> Tensor:
        """Returns rows at probabilities u, but for the values to keep."""
        if not len(u):
            return u.clone()
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            step = self._differentiable if torch.is_grad_enabled() else self._from_uniform
            size = self.weights.sampled_at_once
            both = (self._chunks(u, context, size), self._chunks(kept, None, size))
            chunks = [step(u, context, kept) for (u, context), (kept, _) in zip(*both, strict=True)]
            return torch.cat(chunks)[:, self.order.argsort()]

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows, shape (n, D).

        context: None, one row shape (C,) for all, or one row per sample, shape (n, C).
        generator: A torch.Generator or a seed; fresh randomness by default.
        quasi: Whether to use a scrambled Sobol sequence instead, which covers the distribution
            evenly.
        given: Values to keep, shape (D,) or (n, D), NaN where they are to be drawn; what is kept
            must come first in the order in which columns are modelled, and the rest follows its
            exact conditional.
        """
        with torch.no_grad():
            return self.rsample(n, context, generator, quasi=quasi, given=given)

    def rsample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows that carry gradients to the weights, at the cost of D evaluations; see `sample`."""
        checks.positive("n", n)
        drawn = (quasi_uniform if quasi else uniform)(
            torch.Size((n, self.columns)), self.low, private_generator(generator, self.low.device)
        )
        u, context = self._checked(drawn, checks.one_for_all(context, n))
        kept = checks.given(given, u, self.order, self.low)
        return self._inverse(u, context, kept, differentiable=True)

    def _checked(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
        x = checks.rows("x", x, self.columns, self.low)
        context = checks.context(context, len(x), self.weights.context, self.low)
        return x, context

    def _chunks(
        self, x: Tensor, context: Tensor | None, rows: int = 0
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yields rows and their context, transposed, so many at once, or as many as is quick."""
        per_row = sum(self.weights.outputs) * x.element_size()
        size = len(x) if torch.is_grad_enabled() else rows or rows_at_once(per_row)
        for start in range(0, max(len(x), 1), max(size, 1)):
            part = None if context is None else context[start : start + size].t()
            yield x[start : start + size], part

    def described(self, x: Tensor) -> Tensor:
        """Returns what the heads describe of rows x, in modelling order, shape (D, N)."""
        return x.t()[self.order]

    def follow(self, x: Tensor) -> Tensor:
        """Sets the knots, which are not trained, by rows x; returns what the heads then describe."""
        self.reading.start_at(values := self.described(x))
        return values

    def _theta(self, values: Tensor, context: Tensor | None) -> Tensor:
        theta: Tensor = self.weights(self.reading(values), context)
        return theta

    def _parts(self, values: Tensor, context: Tensor | None) -> Iterator[tuple[Run, Tensor]]:
        """Yields runs with their rows of θ: in pieces, where no gradient is recorded."""
        row_bytes = values.shape[1] * values.element_size()
        found = self.runs if torch.is_grad_enabled() else list(pieces(self.runs, row_bytes))
        sizes = [run.weights for run in found]
        return zip(found, self.weights.parts(self.reading(values), context, sizes), strict=True)

    def _log_prob(self, x: Tensor, seen: Tensor, context: Tensor | None) -> Tensor:
        values = x.t()[self.order]
        missing = torch.isnan(values) & self.optional
        known = values.masked_fill(missing, 0.0)
        parts = self._parts(seen.t()[self.order], context)
        found = torch.cat([self._run_log_prob(run, part, known) for run, part in parts])
        return found.masked_fill(missing, 0.0).t()

    def _run_log_prob(self, run: Run, theta: Tensor, values: Tensor) -> Tensor:
        x, given = self._given(run, theta, values)
        log_prob = run.head.log_prob(given, x)
        return log_prob.masked_fill(
            ~run.head.possible(x, *given[1:3]) & ~torch.isnan(x), -torch.inf
        )

    def _to_uniform(self, x: Tensor, context: Tensor | None) -> Tensor:
        values = x.t()[self.order]
        parts = self._parts(values, context)
        found = [(run.head, *self._given(run, part, values)) for run, part in parts]
        return torch.cat([head.to_uniform(given, part) for head, part, given in found]).t()

    def _given(self, run: Run, theta: Tensor, values: Tensor) -> tuple[Tensor, Given]:
        """Returns the values of a run, shape (g, N), and their weights, shape (P, g, N), with the ends."""
        x, low, high = (t[run.start : run.stop] for t in (values, self.low, self.high))
        theta = theta.unflatten(0, (len(low), -1)).movedim(1, 0)
        quick = theta.shape[2] > 1 and not x.requires_grad
        return x, Given(
            theta, low, high, Kernels.allowed(self.native, self.compiled) if quick else PLAIN
        )

    def _from_uniform(self, u: Tensor, context: Tensor | None, kept: Tensor) -> Tensor:
        stepper = self.weights.stepper(len(u), context)
        found = []
        pairs = zip(u.t()[self.order], kept.t()[self.order], strict=True)
        for position, (probability, value) in enumerate(pairs):
            found.append(self._drawn(position, stepper.theta(), probability, value))
            stepper.feed(self.reading.column(position, found[-1]))
        return torch.stack(found, 1)

    def _differentiable(self, u: Tensor, context: Tensor | None, kept: Tensor) -> Tensor:
        """The plain way, which autograd can follow: the whole network once per column, without dropout."""
        found: list[Tensor] = []
        training = self.weights.training
        self.weights.eval()
        pairs = zip(u.t()[self.order], kept.t()[self.order], strict=True)
        for position, (probability, value) in enumerate(pairs):
            rest = [torch.zeros_like(probability)] * (self.columns - position)
            theta = self._theta(torch.stack(found + rest), context)
            part = theta.split(self.weights.outputs)[position]
            found.append(self._drawn(position, part, probability, value))
        self.weights.train(training)
        return torch.stack(found, 1)

    def _drawn(self, position: int, theta: Tensor, u: Tensor, kept: Tensor) -> Tensor:
        """Returns the column's values to keep, and elsewhere those at probabilities u."""
        draw = torch.isnan(kept)
        if not draw.any():
            return kept
        drawn = self._invert(position, theta, u)
        return drawn if draw.all() else torch.where(draw, drawn, kept)

    def _invert(self, position: int, theta: Tensor, u: Tensor) -> Tensor:
        kernels = PLAIN if torch.is_grad_enabled() else Kernels.allowed(self.native, self.compiled)
        given = Given(theta, self.low[position], self.high[position], kernels)
        return self.ordered[position].from_uniform(given, u)
