"""Roles: one network for every question, with any columns given, any asked, and the rest absent.

For rows in which the columns G are given and the columns A are asked,

    log p(x_A | x_G) = Σ_{i ∈ A} log ν_{θ_i}(x_i),    θ_i = W(x_j of A before i, r(x_G))     (32)

Each column's entry has a role of its own. The reading r(x_G) of the given columns is a context of
the network, so that it reaches every column; entries that are absent are read as missing, have no
likelihood, and are hidden from later columns. Whatever the weights, (32) is a normalized density of
the asked columns, which is evaluated and sampled in one pass. With nothing given and everything
asked it is a joint density, as (15) is. That the answers to different questions fit together is
not built in: training on random roles makes them nearly do so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from nits import checks
from nits.chunks import slices
from nits.heads import Head, real_columns
from nits.model.joint import NITS
from nits.model.steps import Steps
from nits.pnn.random import private_generator, uniform
from nits.weights.allowance import Allowance


class Roles(nn.Module):
    """Answers with any columns given and any asked, equation (32).

    density: Its heads are all optional; its context are features besides the table's columns, if
        any, and after them those of the columns that are given.

    >>> import nits, torch
    >>> roles = nits.Roles.mlp(3, hidden=16, blocks=1)
    >>> x, given = torch.randn(4, 3), torch.tensor([False, False, True])
    >>> roles.log_prob(x, given=given, asked=torch.tensor([True, False, False])).shape
    torch.Size([4])
    """

    def __init__(self, density: NITS) -> None:
        super().__init__()
        read = sum(head.inputs for head in density.heads)
        if not all(head.optional for head in density.heads) or density.context_features < read:
            raise ValueError(
                "the density must have optional heads and read all of them as a context, but does "
                "not; make it with nits.Roles.mlp."
            )
        self.density = density
        self.context_features = density.context_features - read

    @classmethod
    def mlp(  # noqa: PLR0913 - what the network has
        cls,
        heads: Sequence[Head] | int,
        hidden: int = 512,
        blocks: int = 4,
        dropout: float = 0.0,
        context: int = 0,
        order: Sequence[int] | None = None,
        generator: torch.Generator | int | None = None,
    ) -> Self:
        """Returns a network with initial weights; see `NITS.mlp`."""
        heads = optional(real_columns(heads))
        whole = context + sum(head.inputs for head in heads)
        net = NITS.mlp(
            heads,
            hidden=hidden,
            blocks=blocks,
            dropout=dropout,
            context=whole,
            order=order,
            generator=generator,
        )
        return cls(net)

    @property
    def columns(self) -> int:
        """D, the number of columns."""
        return self.density.columns

    @property
    def order(self) -> Tensor:
        """The columns in the order in which asked ones are modelled, shape (D,)."""
        return self.density.order

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of inputs and outputs."""
        return self.density.like

    def read(self, values: Tensor, given: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns what the density reads of rows: the context, and features of the given values.

        values, given: See `steps`; both of shape (N, D).
        """
        context = checks.context(context, len(values), self.context_features, self.like)
        told = values.masked_fill(~given, torch.nan)[:, self.order]
        features = self.density.reading.of_rows(told)
        return features if context is None else torch.cat([context, features], 1)

    def log_prob_per_column(
        self, x: Tensor, given: Tensor, asked: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Returns each asked column's term of (32), shape (N, D); 0 for the others.

        x: Rows, shape (N, D). Values of columns that are neither given nor asked are not looked at.
        given, asked: The roles, shape (N, D), or (D,) for all rows.
        """
        x, given = self._with_roles(x, given)
        x, asked = self._with_roles(x, asked)
        if bool((given & asked).any()):
            raise ValueError("a column must be given or asked, but one is both; take one role.")
        if bool(torch.isnan(x)[given | asked].any()):
            raise ValueError("given and asked values must not be NaN; make such columns absent.")
        told = self.read(x, given, context)
        return self.density.log_prob_per_column(x.masked_fill(~asked, torch.nan), told)

    def log_prob(
        self, x: Tensor, given: Tensor, asked: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Returns log p(x_A | x_G), equation (32), shape (N,)."""
        return self.log_prob_per_column(x, given, asked, context).sum(1)

    def steps(
        self, n: int, values: Tensor, given: Tensor, context: Tensor | None = None
    ) -> RoleSteps:
        """Starts n rows, whose columns are then scored or drawn one by one in `order`.

        values: Numbers, shape (n, D) or (D,), of which those of given columns are read.
        given: Which columns are given, shape (n, D) or (D,). What is fed for them is not looked at;
            a NaN that is fed for another column makes it absent.
        """
        values, given = self._with_roles(values.expand(n, self.columns), given)
        steps = self.density.steps(n, self.read(values, given, context))
        return RoleSteps(steps, values.masked_fill(~given, torch.nan)[:, self.order])

    def sample(
        self,
        values: Tensor,
        given: Tensor,
        generator: torch.Generator | int | None = None,
        *,
        asked: Tensor | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Draws the asked columns of rows, shape (N, D), with the given values as they are.

        values, given: See `steps`; both of shape (N, D).
        asked: By default all columns that are not given; those that are neither are NaN.
        """
        values, given = self._with_roles(values, given)
        absent = torch.zeros_like(given) if asked is None else ~asked.expand_as(given) & ~given
        source = private_generator(generator, self.like.device)
        u = uniform(values.shape, self.like, source)
        rows = torch.full_like(values, torch.nan)
        with torch.no_grad():
            for some in slices(len(values), max(self.density.stepped_at_once, 1)):
                about = None if context is None else context[some]
                steps = self.steps(len(u[some]), values[some], given[some], about)
                for i in self.order.tolist():
                    if not bool(absent[some, i].all()):
                        found = steps.quantile(u[some, i])
                        rows[some, i] = found.masked_fill(absent[some, i], torch.nan)
                    steps.feed(rows[some, i])
        return rows

    def description(self) -> dict[str, Any]:
        """Returns what `described` builds the network from, without its weights."""
        return {"kind": "roles", "density": self.density.description()}

    @classmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns a network like the one whose `description` this is, if it is allowed so much."""
        return cls(NITS.described(about["density"], allowance))

    def _with_roles(self, values: Tensor, roles: Tensor) -> tuple[Tensor, Tensor]:
        """Returns values in the dtype of the model, and the roles of each."""
        if values.ndim != 2 or values.shape[1] != self.columns:
            raise ValueError(
                f"rows must have shape (N, {self.columns}), but have {tuple(values.shape)}; "
                "pass one column per head."
            )
        if roles.dtype != torch.bool or roles.shape not in (values.shape, values.shape[1:]):
            raise ValueError(
                f"roles must be booleans of shape {tuple(values.shape)} or ({self.columns},), but "
                f"are {roles.dtype} of shape {tuple(roles.shape)}; pass one for each value."
            )
        return values.to(self.like), roles.to(self.like.device).expand(len(values), -1)


class RoleSteps(Steps):
    """The columns of rows one by one: those that are given are what they are.

    inner: The steps of the density, which reads the given values as its context.
    fixed: The given values, NaN where there are none, shape (N, D), in modelling order.
    """

    def __init__(self, inner: Steps, fixed: Tensor) -> None:
        self.inner = inner
        self.fixed = list(fixed.unbind(1))

    @property
    def _fixed(self) -> Tensor:
        """The given values of the next column, NaN where there are none, shape (N,)."""
        return self.fixed[0]

    @property
    def _given(self) -> Tensor:
        return ~torch.isnan(self._fixed)

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log-probability of the next column's values; 0 where it is given."""
        return self.inner.log_prob(x.masked_fill(self._given, torch.nan))

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(X ≤ x); a given value is certain."""
        return torch.where(self._given, (x >= self._fixed).to(x.dtype), self.inner.cdf(x))

    def quantile(self, u: Tensor) -> Tensor:
        """Returns the values at probabilities u, and the given values."""
        return self.inner.drawn(u, self._fixed)

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability of their own, as given ones do."""
        return self.inner.has_mass(x) | self._given

    def feed(self, x: Tensor) -> None:
        """Takes the values of the next column, NaN where it is absent."""
        self.inner.feed(x.masked_fill(self._given, torch.nan))
        del self.fixed[0]


def optional(heads: Sequence[Head]) -> list[Head]:
    """Returns heads of the same columns that may be missing."""
    return [dataclasses.replace(head, optional=True) for head in heads]  # type: ignore[type-var]
