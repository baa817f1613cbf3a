"""A weight model whose PNNs follow a straight-line guess of their column.

Half of the units of a PNN are moved by a linear function r of what is known: for their centres b
the model inside returns offsets β. So they follow the columns before without any training:

    b_i = r_i + β_i,    r_i = G_i · (context, features of x_1 … x_{i−1})                     (29)

G is fitted once, by shrunk regressions, and not trained: where columns nearly determine one another
units are steep, and its smallest change would be a large one for them. These units start from the
residuals x_i − r_i. The others do not move: they start from the values x_i, of which some may be
frequent whatever the columns before say. How much weight each half has at the start is decided by
values that were held out. With constant offsets, `Independent`, this is a shrunk linear model; a
network inside bends the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from nits.heads.head import Given, Head
from nits.pnn.initial import Line
from nits.weights import lines
from nits.weights.weight_model import Read, Stepper, WeightModel

HELD_OUT = 5
"""One row in so many is held out to decide how far a line is trusted."""

JUDGED_BY = 5_000
"""Most rows by which it is."""

UPDATES = 50
"""Of the weight of a line."""

WORTH = 5.0
"""Nats of all rows held out by which errors like those of the rows must be ahead of normal ones,
and no line of either: what has fewer numbers is kept unless it is worse."""

FAR = 1e-12
"""A share that is as good as none."""


class Guided(WeightModel):
    """Equation (29) around another weight model.

    model: Returns θ with offsets in place of the centres that follow.
    heads: The columns in modelling order.
    context: Number of features of the context, that of the model by default.
    straight: Which of these features the lines read, all by default.
    heard: Which of them the model reads, all by default.

    >>> import nits
    >>> heads = [nits.heads.Continuous()] * 3
    >>> sizes = [head.inputs for head in heads], [head.weights for head in heads]
    >>> net = nits.weights.Guided(nits.weights.MaskedMLP(*sizes, hidden=16, blocks=1), heads)
    >>> nits.NITS(heads, net).sample(4).shape
    torch.Size([4, 3])
    """

    coefficients: Tensor
    owner: Tensor
    regressors: Tensor

    def __init__(
        self,
        model: WeightModel,
        heads: Sequence[Head],
        context: int | None = None,
        straight: Sequence[int] | None = None,
        heard: Sequence[int] | None = None,
    ) -> None:
        super().__init__(model.inputs, model.outputs, model.context if context is None else context)
        self.model = model
        self.straight = list(range(self.context)) if straight is None else list(straight)
        self.heard = list(range(self.context)) if heard is None else list(heard)
        if model.context != len(self.heard):
            raise ValueError(
                f"heard must name the {model.context} features that the model reads, but names "
                f"{len(self.heard)}; name as many."
            )
        self.sampled_at_once = model.sampled_at_once
        flags = [_read_by_lines(head) for head in heads]
        self.before = [0, *accumulate(int(flag.sum()) for flag in flags)]
        for name, value in (
            ("coefficients", torch.zeros(len(heads), len(self.straight) + self.before[-1])),
            ("regressors", torch.cat(flags).nonzero().flatten()),
            ("owner", torch.cat([_owner(i, head) for i, head in enumerate(heads)])),
        ):
            self.register_buffer(name, value, persistent=name == "coefficients")

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N)."""
        (theta,) = self.parts(features, context, [sum(self.outputs)])
        return theta

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the weights in parts of these sizes, each when it is asked for."""
        guess = self.guess(features, context)
        parts = self.model.parts(features, self.hear(context), sizes)
        for theta, owner in zip(parts, self.owner.split(list(sizes)), strict=True):
            yield _moved(theta, owner, guess)

    def guess(self, features: Tensor, context: Tensor | None) -> Tensor:
        """Returns the straight-line guess of each column, shape (D, N)."""
        return self.coefficients @ self._known(features, context)

    def hear(self, context: Tensor | None) -> Tensor | None:
        """Returns what the model reads of the context."""
        if context is None or len(self.heard) == self.context:
            return context
        return context[self.heard]

    def _known(self, features: Tensor, context: Tensor | None) -> Tensor:
        """Returns what the lines read of the context, and the features that are no hats."""
        read = features[self.regressors]
        return read if context is None else torch.cat([context[self.straight], read])

    def stepper(self, n: int, context: Tensor | None = None) -> GuidedStepper:
        """Starts the evaluation of n rows column by column."""
        return GuidedStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta whatever the input."""
        self.coefficients.zero_()
        self.model.start_at(theta)

    def start_from(
        self, heads: Sequence[Head], columns: Tensor, read: Read, context: Tensor | None = None
    ) -> None:
        """Starts as the shrunk linear model; see `WeightModel.start_from`."""
        known = self._known(read(columns), context).double()
        kept = torch.arange(columns.shape[1], device=columns.device) % HELD_OUT == 0
        guesses = self._lines(heads, columns[:, ~kept], known[:, ~kept]) @ known
        rows = zip(heads, columns, guesses.to(columns), strict=True)
        judged = [_judged(*row, kept) for row in rows]
        found = self._lines(heads, columns, known)
        found *= found.new_tensor([line is not None for line in judged]).unsqueeze(1)
        parts = []
        for head, x, guess, line in zip(heads, columns, found @ known, judged, strict=True):
            here = ~torch.isnan(x)
            line = None if line is None else line._replace(guess=guess.to(x)[here])
            parts.append(head.initial(x[here], line))
        self.model.start_at(torch.cat(parts))
        self.coefficients.copy_(found)

    def _lines(self, heads: Sequence[Head], columns: Tensor, known: Tensor) -> Tensor:
        """Returns the coefficients of each column's line, without its constant."""
        points = torch.stack([head.placed(x) for head, x in zip(heads, columns, strict=True)])
        before = [len(self.straight) + count for count in self.before[:-1]]
        return lines.fitted(known, points.double(), before)[:, :-1]


class GuidedStepper:
    """Moves the centres of each column by the guess from the columns fed so far."""

    def __init__(self, guided: Guided, n: int, context: Tensor | None) -> None:
        self.guided, self.position = guided, 0
        self.inner: Stepper = guided.model.stepper(n, guided.hear(context))
        like = guided.coefficients
        self.known = [like.new_empty(0, n) if context is None else context[guided.straight]]
        self.owners = guided.owner.split(guided.outputs)
        flags = torch.zeros(sum(guided.inputs), dtype=torch.bool, device=like.device)
        flags[guided.regressors] = True
        self.read = flags.split(guided.inputs)

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        known = torch.cat(self.known)
        guess = self.guided.coefficients[self.position, : len(known)] @ known
        owner = (self.owners[self.position] >= 0).long() - 1
        return _moved(self.inner.theta(), owner, guess.unsqueeze(0))

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        self.inner.feed(features)
        self.known.append(features[self.read[self.position]])
        self.position += 1


def _moved(theta: Tensor, owner: Tensor, guess: Tensor) -> Tensor:
    """Adds the guess of a column, shape (D, N), to its centres; rows of θ that stay have −1."""
    rows = (owner >= 0).nonzero().flatten()
    if not len(rows):
        return theta
    return theta.expand(-1, guess.shape[1]).index_add(0, rows, guess[owner[rows]])


def _owner(position: int, head: Head) -> Tensor:
    """Returns, for each weight of a column, its position if it follows, and −1 if not."""
    owner = torch.full((head.weights,), -1)
    owner[head.followers] = position
    return owner


def _read_by_lines(head: Head) -> Tensor:
    """Returns which features of a column the lines read: all but its hats."""
    flags = torch.ones(head.inputs, dtype=torch.bool)
    flags[1 : 1 + head.knots] = False
    return flags


def _judged(head: Head, x: Tensor, guess: Tensor, kept: Tensor) -> Line | None:
    """Returns how far to trust a guess of the values x, shape (N,), by those that were kept.

    None if it does not pay: all units then start from the values.
    """
    known = ~torch.isnan(x)
    fitted, held_out = known & ~kept, (known & kept).nonzero().flatten()[:JUDGED_BY]
    if head.followers.start == head.followers.stop or not len(held_out):
        return None
    owner = _owner(0, head)

    def scored(line: Line | None) -> Tensor:
        theta = head.initial(x[fitted], None if line is None else line.of(fitted)).unsqueeze(1)
        given = theta if line is None else _moved(theta, owner, guess[held_out].unsqueeze(0))
        ends = x.new_tensor(head.low), x.new_tensor(head.high)
        return head.log_prob(Given(given, *ends), x[held_out]).double()

    others = scored(Line(guess, FAR, normal=False))
    best, least = None, -torch.inf
    for normal in (True, False):
        line = Line(guess, 1 - FAR, normal)
        gained, share = _share(scored(line), others)
        if gained > least:
            best, least = line._replace(share=share), gained + WORTH
    return None if float(scored(None).sum()) > least else best


def _share(following: Tensor, alone: Tensor) -> tuple[float, float]:
    """Returns the log-likelihood of the best mixture of two, and the share of the first in it.

    following, alone: Log-densities of the same values, shape (N,). Half a value is added to each.
    """
    share = 0.5
    for _ in range(UPDATES):
        log_share = following.new_tensor([share, 1 - share]).log()
        both = torch.stack([following + log_share[0], alone + log_share[1]])
        share = float((both.softmax(0)[0].sum() + 0.5) / (len(alone) + 1))
    return float(both.logsumexp(0).sum()), share
