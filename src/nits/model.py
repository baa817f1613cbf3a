"""NITS: the joint density of D columns, as the product of PNNs whose weights a network hands out.

ν(x_1 … x_D) = Π_i ν_{θ_i}(x_i),    θ_i = W(x_1 … x_{i−1}, context)                      (15)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from nits import checks, compiled, pnn, quantiles
from nits.distributions import private_generator, uniform
from nits.heads import Head, real_columns
from nits.reading import Reading
from nits.weights import Independent, MaskedMLP, WeightModel

CHUNK_BYTES = 2**27
"""How much memory the weights of one chunk of rows may take where no gradient is recorded."""

SAMPLED_AT_ONCE = 8192
"""How many rows are drawn together: one column's weights are held at a time, so more fit than in scoring."""

PNNS_AT_ONCE = 8192
"""How many PNNs are evaluated side by side: enough to be quick, few enough for the cache."""


class Run(NamedTuple):
    """Neighbouring columns of one kind: positions start … stop, with so many weights in all."""

    head: Head
    start: int
    stop: int
    weights: int


class NITS(nn.Module):
    """An exact joint density: one head per column, and a weight model that reads the columns before.

    heads: One per column, or an int for that many real columns.
    weights: A weight model made for these heads, in the order in which they are modelled.
    order: Columns in the order in which they are modelled; as given by default.
    """

    low: Tensor
    high: Tensor
    order: Tensor

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
        self.compiled = False
        self.register_buffer("order", torch.tensor(positions), persistent=False)
        for name in ("low", "high"):
            self.register_buffer(name, torch.empty(0), persistent=False)
        self._set_ends()
        self.runs = tuple(_runs(self.ordered))

    def _set_ends(self) -> None:
        """Sets the buffers `low` and `high`, shapes (D, 1), in the dtype they have."""
        for name in ("low", "high"):
            old: Tensor = getattr(self, name)
            ends = [[float(getattr(head, name))] for head in self.ordered]
            setattr(self, name, torch.tensor(ends, dtype=old.dtype, device=old.device))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> NITS:
        """Moves and converts as modules do; the ends keep all digits that the new dtype has."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._set_ends()
        return self

    @classmethod
    def independent(cls, heads: Sequence[Head] | int) -> NITS:
        """Returns the coordinate-wise independent model."""
        heads = real_columns(heads)
        return cls(heads, Independent([h.inputs for h in heads], [h.weights for h in heads]))

    @classmethod
    def mlp(
        cls,
        heads: Sequence[Head] | int,
        hidden: int = 512,
        blocks: int = 4,
        dropout: float = 0.0,
        context: int = 0,
        order: Sequence[int] | None = None,
    ) -> NITS:
        """Returns NITS-MLP: a masked residual MLP as the weight model."""
        heads = real_columns(heads)
        ordered = [heads[i] for i in checks.order(order, len(heads))]
        inputs, outputs = [h.inputs for h in ordered], [h.weights for h in ordered]
        weights = MaskedMLP(inputs, outputs, context, hidden=hidden, blocks=blocks, dropout=dropout)
        return cls(heads, weights, order)

    @property
    def columns(self) -> int:
        """D, the number of columns."""
        return len(self.heads)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns log ν(x) in nats for rows x, shape (N, D): −inf outside the support, NaN for NaN."""
        return self.log_prob_per_column(x, context).sum(-1)

    def log_prob_per_column(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns each column's share of log ν(x), shape (N, D), columns as in x."""
        x, context = self._checked(x, context)
        chunks = [self._log_prob(*chunk) for chunk in self._chunks(x, context)]
        return torch.cat(chunks)[:, self.order.argsort()]

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of every column given the columns modelled before it, N rows each."""
        x, context = self._checked(x, context)
        context = None if context is None else context.t()
        theta = self._theta(self._values(x), context).expand(-1, len(x))
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
        """Returns x with to_uniform(x) = u, for one evaluation of the network and D quantiles.

        If u requires gradients they flow to it and to the weights, at the cost of D evaluations.
        """
        u, context = self._checked(checks.probability(checks.real("u", u)), context)
        return self._inverse(u, context, differentiable=u.requires_grad)

    def _inverse(self, u: Tensor, context: Tensor | None, *, differentiable: bool) -> Tensor:
        if not len(u):
            return u.clone()
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            step = self._differentiable if torch.is_grad_enabled() else self._from_uniform
            chunks = [step(*chunk) for chunk in self._chunks(u, context, rows=SAMPLED_AT_ONCE)]
            return torch.cat(chunks)[:, self.order.argsort()]

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
    ) -> Tensor:
        """Draws n rows, shape (n, D).

        context: None, one row shape (C,) for all, or one row per sample, shape (n, C).
        generator: A torch.Generator or a seed; fresh randomness by default.
        quasi: Whether to use a scrambled Sobol sequence instead, which covers the distribution evenly.
        """
        with torch.no_grad():
            return self.rsample(n, context, generator, quasi=quasi)

    def rsample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
    ) -> Tensor:
        """Draws n rows that carry gradients to the weights, at the cost of D evaluations; see `sample`."""
        checks.positive("n", n)
        if isinstance(context, Tensor) and context.dim() == 1:
            context = context.expand(n, -1)
        u, context = self._checked(self._uniform(n, generator, quasi=quasi), context)
        return self._inverse(u, context, differentiable=True)

    def _uniform(self, n: int, generator: torch.Generator | int | None, *, quasi: bool) -> Tensor:
        generator = private_generator(generator, self.low.device)
        if not quasi:
            return uniform(torch.Size((n, self.columns)), self.low, generator)
        seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        points = torch.quasirandom.SobolEngine(self.columns, scramble=True, seed=seed).draw(
            n, dtype=torch.float64
        )
        inner = points.clamp(2.0**-32, 1 - 2.0**-24)
        return inner.to(self.low)

    def _checked(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
        x = checks.rows("x", x, self.columns, self.low)
        context = checks.context(context, len(x), self.weights.context, self.low)
        return x, context

    def _chunks(
        self, x: Tensor, context: Tensor | None, rows: int = 0
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yields rows and their context, transposed, so many at once, or as many as fit CHUNK_BYTES."""
        per_row = sum(self.weights.outputs) * x.element_size()
        size = len(x) if torch.is_grad_enabled() else rows or max(1024, CHUNK_BYTES // per_row)
        for start in range(0, max(len(x), 1), max(size, 1)):
            part = None if context is None else context[start : start + size].t()
            yield x[start : start + size], part

    def _values(self, x: Tensor) -> Tensor:
        """Returns the columns in modelling order, shape (D, N)."""
        return x.t()[self.order]

    def _theta(self, values: Tensor, context: Tensor | None) -> Tensor:
        theta: Tensor = self.weights(self.reading(values), context)
        return theta

    def _split(self, theta: Tensor) -> list[Tensor]:
        """Returns each run's rows of θ."""
        return [theta] if len(self.runs) == 1 else list(theta.split([run.weights for run in self.runs]))

    def _log_prob(self, x: Tensor, context: Tensor | None) -> Tensor:
        values = self._values(x)
        theta = self._theta(values, context)
        parts = zip(self.runs, self._split(theta), strict=True)
        return torch.cat([self._run_log_prob(run, part, values) for run, part in parts]).t()

    def _run_log_prob(self, run: Run, theta: Tensor, values: Tensor) -> Tensor:
        low, high, x = (t[run.start : run.stop] for t in (self.low, self.high, values))
        points = run.head.points(x, low, high)
        if self.compiled and theta.shape[1] > 1 and not x.requires_grad and compiled.available():
            log_prob = compiled.log_prob(run.head, theta, points, low, high)
        else:
            frames = self._frames(run, theta, values)
            log_prob = torch.cat(
                [run.head.log_prob(at, tuple(p[cols] for p in points)) for at, cols in frames]
            )
        impossible = ~run.head.possible(x, low, high) & ~torch.isnan(x)
        return log_prob.masked_fill(impossible, -torch.inf)

    def _to_uniform(self, x: Tensor, context: Tensor | None) -> Tensor:
        values = self._values(x)
        theta = self._theta(values, context)
        parts = [
            run.head.to_uniform(at, values[run.start : run.stop][columns])
            for run, part in zip(self.runs, self._split(theta), strict=True)
            for at, columns in self._frames(run, part, values)
        ]
        return torch.cat(parts).t()

    def _frames(self, run: Run, theta: Tensor, values: Tensor) -> Iterator[tuple[pnn.Frame, slice]]:
        """Yields a few columns of a run at a time, laid over their supports."""
        low, high = self.low[run.start : run.stop], self.high[run.start : run.stop]
        theta = theta.unflatten(0, (len(low), -1)).movedim(1, 0)  # (P, g, N)
        group = max(1, PNNS_AT_ONCE // max(values.shape[1], 1))
        for start in range(0, len(low), group):
            columns = slice(start, start + group)
            yield pnn.frame(theta[:, columns], low[columns], high[columns], run.head.hidden), columns

    def _from_uniform(self, u: Tensor, context: Tensor | None) -> Tensor:
        stepper = self.weights.stepper(len(u), context)
        found = []
        for position, probability in enumerate(self._values(u)):
            found.append(self._invert(position, stepper.theta(), probability))
            stepper.feed(self.reading.column(position, found[-1]))
        return torch.stack(found, 1)

    def _differentiable(self, u: Tensor, context: Tensor | None) -> Tensor:
        """The plain way, which autograd can follow: the whole network once per column, without dropout."""
        found: list[Tensor] = []
        training = self.weights.training
        self.weights.eval()
        for position, probability in enumerate(self._values(u)):
            rest = [torch.zeros_like(probability)] * (self.columns - position)
            theta = self._theta(torch.stack(found + rest), context)
            part = theta.split(self.weights.outputs)[position]
            found.append(self._invert(position, part, probability))
        self.weights.train(training)
        return torch.stack(found, 1)

    def _invert(self, position: int, theta: Tensor, u: Tensor) -> Tensor:
        head, low, high = self.ordered[position], self.low[position], self.high[position]
        if self.compiled and not torch.is_grad_enabled() and compiled.available():
            x = quantiles.quantile(theta.expand(-1, len(u)), u, low, high, head.hidden)
            return head.value(x, low, high)
        return head.from_uniform(pnn.frame(theta, low, high, head.hidden), u)


def _runs(heads: Sequence[Head]) -> Iterator[Run]:
    start = 0
    for i, head in enumerate(heads):
        if i + 1 == len(heads) or heads[i + 1].kind != head.kind:
            yield Run(heads[start], start, i + 1, sum(h.weights for h in heads[start : i + 1]))
            start = i + 1
