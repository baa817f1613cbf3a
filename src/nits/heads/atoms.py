"""A real column that takes some values with a probability of their own: zeros, round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nits import checks
from nits.heads.continuous import Continuous
from nits.heads.cycles import Cycle
from nits.heads.distribution import AtomsColumn
from nits.heads.head import Given, Head, moved
from nits.pnn.initial import Line


@dataclass(frozen=True)
class Atoms(Head):
    """Value a_k with probability p_k; otherwise a real number with a PNN's density on [low, high].

    The base measure is a unit of mass at each atom, and length elsewhere:

        P(x) = p_k  if x = a_k,    (1 − Σ_k p_k) ν(x)  otherwise                            (17)

    values: The atoms a_1 < a_2 < … They may lie outside [low, high], as a code for "missing" does;
        the weight model then reads the nearest end, and which atom it is.
    hidden: Widths of the PNN's hidden layers; the paper's by default, see `Continuous`.
    cycles: What the weight model reads of a value's place in cycles, such as the time of day.

    >>> import nits, torch
    >>> rain = nits.heads.Atoms(values=(0.0,), low=0.0)  # a dry day has a probability of its own
    >>> bool((nits.NITS.independent([rain]).sample(200) == 0).any())
    True
    """

    values: tuple[float, ...]
    low: float = -math.inf
    high: float = math.inf
    hidden: tuple[int, ...] = (16, 16)
    knots: int = 0
    optional: bool = False
    cycles: tuple[Cycle, ...] = ()

    def __post_init__(self) -> None:
        checks.ends(self.low, self.high)
        object.__setattr__(self, "hidden", checks.hidden(self.hidden))
        object.__setattr__(self, "values", checks.atoms(self.values))
        checks.knots(self.knots)

    @property
    def rest(self) -> Continuous:
        """The head of the values that are not atoms."""
        return Continuous(self.low, self.high, self.hidden, self.knots, cycles=self.cycles)

    @property
    def outside(self) -> bool:
        """Whether an atom lies outside [low, high]."""
        return self.values[0] < self.low or self.values[-1] > self.high

    @property
    def weights(self) -> int:
        """A logit per atom, one for the rest, and the PNN's weights."""
        return len(self.values) + 1 + self.rest.weights

    @property
    def read(self) -> int:
        """The value, its hats, its place in each cycle, and one flag per atom."""
        return self.rest.read + len(self.values)

    @property
    def kind(self) -> tuple[object, ...]:
        """Heads with the same atoms and hidden layers are evaluated together.

        If atoms lie outside, the heads must share their support, to which values read are clamped.
        """
        clamped = (self.low, self.high) if self.outside else ()
        return ("atoms", self.values, self.hidden, self.cycles, clamped)

    def _parts(self, given: Given) -> tuple[Tensor, Given]:
        """Returns the logits, shape (*, K + 1, N), and the PNN of the rest."""
        logits, theta = given.theta.split([len(self.values) + 1, self.rest.weights], -2)
        return logits, given._replace(theta=theta)

    def _is_atom(self, x: Tensor) -> Tensor:
        """Returns whether x, shape (*, N), equals each atom, shape (*, K, N)."""
        return x.unsqueeze(-2) == self._atoms(x)

    def _atoms(self, x: Tensor) -> Tensor:
        """Returns the atoms, shape (K, 1), in the dtype of x."""
        return torch.tensor(self.values, dtype=x.dtype, device=x.device).unsqueeze(-1)

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values are atoms."""
        return self._is_atom(x).any(-2)

    def log_prob_inside(self, given: Given, x: Tensor) -> Tensor:
        """Returns the logarithm of (17)."""
        logits, rest = self._parts(given)
        here = self._is_atom(x)
        logits = logits.log_softmax(-2)
        at_atom = torch.where(here, logits[..., :-1, :], 0.0).sum(-2)
        elsewhere = logits[..., -1, :] + self.rest.log_prob_inside(rest, x)
        return torch.where(here.any(-2), at_atom, elsewhere)

    def possible(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Returns whether x is an atom, or low ≤ x ≤ high and x is finite."""
        inside = self.rest.possible(x, low, high)
        return inside | self.has_mass(x) if self.outside else inside

    def to_uniform(self, given: Given, x: Tensor) -> Tensor:
        """Returns P(X < x), plus half of P(X = x) if x is an atom."""
        logits, _ = self._parts(given)
        own = (logits.softmax(-2)[..., :-1, :] * self._is_atom(x)).sum(-2)
        return self.cdf(given, x) - own / 2

    def cdf(self, given: Given, x: Tensor) -> Tensor:
        """Returns the probability of the rest up to x, plus that of the atoms up to x."""
        logits, rest = self._parts(given)
        share = logits.softmax(-2)
        counted = (self._atoms(x) <= x.unsqueeze(-2)).to(x.dtype)
        atoms = (share[..., :-1, :] * counted).sum(-2)
        below = share[..., -1, :] * self.rest.cdf(rest, x) + atoms
        return below.clamp(max=1)  # the shares sum to one to rounding only

    def from_uniform(self, given: Given, u: Tensor) -> Tensor:
        """Returns the value at probability u: an atom where the cdf jumps past u."""
        logits, rest = self._parts(given)
        share = logits.softmax(-2)
        before = torch.zeros_like(u)
        passed = torch.zeros_like(u)
        x = torch.full_like(u, torch.nan)
        for value, mass in zip(self.values, share[..., :-1, :].unbind(-2), strict=True):
            at = torch.full_like(u, value)
            start = share[..., -1, :] * self.rest.cdf(rest, at) + before
            before = before + mass
            last = at > given.high  # there is nothing after it that u = 1 could be
            x = torch.where((u >= start) & ((u < start + mass) | last), at, x)
            passed = torch.where(u >= start + mass, before, passed)
        inner = ((u - passed) / share[..., -1, :]).clamp(0, 1)
        drawn = self.rest.from_uniform(rest, inner)
        return torch.where(torch.isnan(x) & ~torch.isnan(u), drawn, x)

    def features(self, x: Tensor) -> Tensor:
        """The value or the end next to it, its place in cycles, and one flag per atom."""
        atoms = self._is_atom(x).movedim(-2, 0).to(x.dtype)
        return torch.cat([self.rest.features(self._clamped(x)), atoms])

    def _clamped(self, x: Tensor) -> Tensor:
        """Returns x, or the nearest end if atoms lie outside."""
        return x.clamp(self.low, self.high) if self.outside else x

    def hat_values(self, x: Tensor) -> Tensor:
        """The values that are not atoms."""
        return self._others(x)

    def distribution(self, theta: Tensor, low: Tensor | float, high: Tensor | float) -> AtomsColumn:
        """Returns the distribution with weights theta."""
        return AtomsColumn(self, theta, low, high)

    @property
    def followers(self) -> slice:
        """Those of the rest, after the logits."""
        return moved(self.rest.followers, len(self.values) + 1)

    def placed(self, x: Tensor) -> Tensor:
        """Returns x, and NaN for atoms."""
        return x.masked_fill(self.has_mass(x), torch.nan)

    def initial(self, x: Tensor, line: Line | None = None) -> Tensor:
        """Returns logits that give the atoms their shares, and weights that follow the rest."""
        here, rest = self._is_atom(x), self._rest(x)
        counts = torch.cat([here.sum(-1), (~here.any(-2)).sum().reshape(1)]).to(x.dtype) + 0.5
        line = None if line is None else line.of(rest)
        theta = self.rest.initial(self._clamped(x[rest]), line)
        return torch.cat([torch.log(counts / counts.sum()), theta])

    def _others(self, x: Tensor) -> Tensor:
        """Returns the values of the rest."""
        return self._clamped(x[self._rest(x)])

    def _rest(self, x: Tensor) -> Tensor:
        """Returns which values are not atoms, or all if fewer than two are left."""
        rest = ~self.has_mass(x)
        return rest if int(rest.sum()) > 1 else torch.ones_like(rest)
