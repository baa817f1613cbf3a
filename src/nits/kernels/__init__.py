"""The one door through which many PNNs are evaluated: how is decided here and nowhere else.

`log_prob`, `cdf` and `quantile` take the weights of g columns and N rows and use our own kernels in
C++ (`native`), those of torch.compile (`compiled`, `compiled_quantile`) or plain tensor operations.
Users turn kernels off for a block of code, `with nits.kernels.using(native=False):`, or for a
process, `NITS_KERNELS=plain`; see `using`. Imports `nits.pnn`; the heads import it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from nits.chunks import slices
from nits.kernels import compiled, compiled_quantile, native
from nits.pnn import network, roots

__all__ = ["Policy", "cdf", "current", "log_prob", "quantile", "using"]

VARIABLE = "NITS_KERNELS"
"""Environment variable that lists what may be used, such as `native,compiled`; `plain` for neither."""

NATIVE, COMPILED, PLAIN = "native", "compiled", "plain"

PNNS_AT_ONCE = 8192
"""How many PNNs plain operations evaluate side by side: enough to be quick, few enough for the cache."""


@dataclass(frozen=True)
class Policy:
    """What may be used, and what has been.

    native: Whether our own kernels in C++ may.
    compiled: Whether torch.compile's may, where our own cannot; None leaves it to `nits.fit`, which knows
        whether there is enough work to be worth compiling.
    training: Whether kernels may be used where gradients are recorded. They know the first derivative
        in θ only, which is all that training needs.
    ran: Names of what has evaluated PNNs under this policy.
    """

    native: bool = True
    compiled: bool | None = None
    training: bool = False
    ran: set[str] = field(default_factory=set, compare=False)

    @property
    def applies(self) -> bool:
        """Whether kernels may be used now: not in a graph that torch.compile or export is making."""
        if torch.compiler.is_compiling():
            return False
        return self.training or not torch.is_grad_enabled()


_chosen: ContextVar[Policy | None] = ContextVar("nits_kernels", default=None)


def current() -> Policy:
    """Returns the policy of the innermost `using`, or else of the environment."""
    chosen = _chosen.get()
    return _from_environment() if chosen is None else chosen


@contextmanager
def using(
    *, native: bool | None = None, compiled: bool | None = None, training: bool | None = None
) -> Iterator[set[str]]:
    """Sets the policy for a block of code in this thread; yields the names of what runs in it.

    What is not named stays as it is outside the block.
    """
    named = {"native": native, "compiled": compiled, "training": training}
    changes = {name: value for name, value in named.items() if value is not None}
    policy = replace(current(), ran=set(), **changes)
    token = _chosen.set(policy)
    try:
        yield policy.ran
    finally:
        _chosen.reset(token)


def _from_environment() -> Policy:
    listed = os.environ.get(VARIABLE)
    if not listed:
        return Policy()
    names = {name.strip() for name in listed.split(",")}
    unknown = names - {NATIVE, COMPILED, PLAIN}
    if unknown:
        raise ValueError(
            f"{VARIABLE} must list {NATIVE}, {COMPILED} or {PLAIN}, but has {sorted(unknown)[0]!r}; "
            f"{VARIABLE}={PLAIN} turns all kernels off."
        )
    return Policy(native=NATIVE in names, compiled=COMPILED in names)


def log_prob(
    theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, hidden: Sequence[int]
) -> Tensor:
    """Returns log ν(x), equation (5), of one point, or log P(s < X ≤ t), equation (6), of two.

    theta: Weights, shape (g, P, N), or (P, N) for one column; N may be 1, the same for all rows.
    points: In the supports, shape (g, N) or (N,) each.
    low, high: Ends of the supports, shape (g, 1), or such that they broadcast to the points.
    """
    policy = current()
    if policy.applies and _is_block(theta, points, low):
        if policy.native and native.usable(theta):
            policy.ran.add(NATIVE)
            return native.log_prob(theta, points, low, high, hidden)
        if policy.compiled and compiled.available():
            policy.ran.add(COMPILED)
            return compiled.log_prob(theta, points, low, high, tuple(hidden))
    policy.ran.add(PLAIN)
    return _by_columns(_log_probability, theta, points, low, high, hidden)


def cdf(theta: Tensor, x: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns N(x), equation (4), for points x; shapes as those of `log_prob`."""
    return _by_columns(_below, theta, (x,), low, high, hidden)


def quantile(theta: Tensor, u: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns x with N(x) = u; shapes as those of `log_prob`. Differentiable if gradients are recorded."""
    policy = current()
    one_column = theta.dim() == 2 and u.dim() == 1 and low.numel() == 1
    if one_column and policy.applies and not torch.is_grad_enabled():
        if policy.native and native.usable(theta):
            policy.ran.add(NATIVE)
            return _found(native.quantile, theta, u, low, high, tuple(hidden))
        if policy.compiled and compiled.available():
            policy.ran.add(COMPILED)
            return _found(compiled_quantile.quantile, theta, u, low, high, tuple(hidden))
    policy.ran.add(PLAIN)
    return roots.quantile(network.normalized(theta.movedim(-2, 0), low, high, hidden), u, 1 - u)


def _found(
    seek: Callable[..., tuple[Tensor, Tensor]],
    theta: Tensor,
    u: Tensor,
    low: Tensor,
    high: Tensor,
    hidden: tuple[int, ...],
) -> Tensor:
    """Returns quantiles by a kernel; the roots that it leaves open are found by `roots`, which always does."""
    theta = theta.expand(-1, len(u))
    inner = torch.where((u > 0) & (u < 1), u, 0.5)
    x, open_ = seek(theta, inner, low, high, hidden)
    if open_.any():
        at = network.normalized(theta[:, open_], low, high, hidden)
        x[open_] = roots.quantile(at, inner[open_], 1 - inner[open_])
    x = torch.where(u <= 0, low, torch.where(u >= 1, high, x))
    return torch.where(torch.isnan(u), torch.nan, x)


def _is_block(theta: Tensor, points: tuple[Tensor, ...], low: Tensor) -> bool:
    """Returns whether kernels take these: several rows of columns, and no gradient in the points."""
    if theta.dim() != 3 or low.shape != (len(theta), 1):
        return False
    several = theta.shape[2] == points[0].shape[-1] > 1
    return several and not any(point.requires_grad for point in points)


def _log_probability(at: network.Normalized, *points: Tensor) -> Tensor:
    return network.log_density(at, *points) if len(points) == 1 else network.log_mass(at, *points)


def _below(at: network.Normalized, x: Tensor) -> Tensor:
    return network.cdf(at, x)[0]


def _by_columns(
    function: Callable[..., Tensor],
    theta: Tensor,
    points: tuple[Tensor, ...],
    low: Tensor,
    high: Tensor,
    hidden: Sequence[int],
) -> Tensor:
    """Evaluates a few columns at a time, so that the PNNs at work stay in the cache."""
    if theta.dim() == 2:
        return function(network.normalized(theta, low, high, hidden), *points)
    size = max(1, PNNS_AT_ONCE // max(points[0].shape[-1], 1))
    parts = []
    for some in slices(len(theta), size):
        at = network.normalized(theta[some].movedim(1, 0), low[some], high[some], hidden)
        parts.append(function(at, *(point[some] for point in points)))
    return torch.cat(parts)
