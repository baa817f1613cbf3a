"""The one door through which PNNs are evaluated: only here is it decided which kernels do it.

`log_prob`, `cdf` and `quantile` take the weights of g columns and N rows and use our own kernels in
C++ (`native`), those of torch.compile (`compiled`, `compiled_quantile`) or plain tensor operations.
Users turn kernels off for a block of code, `with nits.kernels.using(native=False):`, or for a
process, `NITS_KERNELS=plain`; see `using`. Imports `nits.pnn`; the heads import it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from nits.chunks import slices
from nits.kernels import compiled, compiled_quantile, native
from nits.pnn import network, roots

__all__ = [
    "Policy",
    "cdf",
    "current",
    "full_precision",
    "holding",
    "log_prob",
    "quantile",
    "trunk",
    "using",
]

VARIABLE = "NITS_KERNELS"
"""Environment variable that lists the kernels allowed, as `native,compiled`; `plain` for none."""

NATIVE, COMPILED, PLAIN = "native", "compiled", "plain"

LARGEST = 16.0
"""The largest feature of images that our own kernels read: neighbours hear its rounding errors."""

PNNS_AT_ONCE = 8192
"""PNNs that plain operations evaluate at once: enough to be fast, few enough for the cache."""


@dataclass(frozen=True)
class Policy:
    """Which kernels may be used, and which have been.

    native: Whether our own kernels in C++ may be used.
    compiled: Whether torch.compile's kernels may be used where our own cannot; None leaves it to
        `nits.fit`, which knows whether there is enough work for compiling to pay.
    training: Whether kernels may be used while gradients are recorded. They provide only the first
        derivative with respect to θ, which is all that training needs.
    ran: Names of the kernels that have evaluated PNNs under this policy.
    """

    native: bool = True
    compiled: bool | None = None
    training: bool = False
    ran: set[str] = field(default_factory=set, compare=False)

    @property
    def applies(self) -> bool:
        """Whether kernels may be used now: never while torch.compile or export traces a graph."""
        if torch.compiler.is_compiling():
            return False
        return self.training or not torch.is_grad_enabled()


_chosen: ContextVar[Policy | None] = ContextVar("nits_kernels", default=None)


def current() -> Policy:
    """Returns the policy of the innermost `using`, or of the environment if there is none."""
    chosen = _chosen.get()
    return _from_environment() if chosen is None else chosen


@contextmanager
def using(
    *, native: bool | None = None, compiled: bool | None = None, training: bool | None = None
) -> Iterator[set[str]]:
    """Sets the policy for a block of code in this thread; yields the names of the kernels it ran.

    Arguments left out stay as they are outside the block.
    """
    named = {"native": native, "compiled": compiled, "training": training}
    changes = {name: value for name, value in named.items() if value is not None}
    with holding(replace(current(), ran=set(), **changes)) as ran:
        yield ran


@contextmanager
def holding(policy: Policy) -> Iterator[set[str]]:
    """Sets the whole policy, such as that of another process, as `using` sets parts of it."""
    ran: set[str] = set()
    token = _chosen.set(replace(policy, ran=ran))
    try:
        yield ran
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
            f"{VARIABLE} must list {NATIVE}, {COMPILED} or {PLAIN}, but has "
            f"{sorted(unknown)[0]!r}; {VARIABLE}={PLAIN} turns all kernels off."
        )
    return Policy(native=NATIVE in names, compiled=COMPILED in names)


def log_prob(
    theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, hidden: Sequence[int]
) -> Tensor:
    """Returns log ν(x), equation (5), of one point, or log P(s < X ≤ t), equation (6), of two.

    theta: Weights, shape (g, P, N), or (P, N) for one column; N may be 1, the same for all rows.
    points: In the supports, shape (g, N) or (N,) each.
    low, high: Ends of the supports, shape (g, 1), or any shape that broadcasts to the points.
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
    """Returns N(x), equation (4), for points x; shapes as in `log_prob`."""
    policy = current()
    if policy.applies and policy.native and not torch.is_grad_enabled():
        found = _cdf_by_mass(theta, x, low, high, hidden)
        if found is not None:
            policy.ran.add(NATIVE)
            return found
    return _by_columns(_below, theta, (x,), low, high, hidden)


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Returns a block of code without `torch.autocast`; tensors without numbers never have it."""
    if device.type == "meta":
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def trunk(x: Tensor) -> bool:
    """Returns whether our own kernels evaluate the layers of an image network with input x.

    They do for gradients alone, and if no number is large. In their convolutions later pixels
    cancel but for rounding; in a score, what comes later must change nothing, to the last bit.
    """
    if torch.compiler.is_compiling() or not torch.is_grad_enabled() or not native.usable(x):
        return False
    policy = current()
    lowered = torch.is_autocast_enabled(x.device.type)
    if lowered or not (policy.training and policy.native):
        return False
    if not bool(x.detach().abs().amax() <= LARGEST):  # nor if one is NaN
        return False
    policy.ran.add(NATIVE)
    return True


def _cdf_by_mass(
    theta: Tensor, x: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]
) -> Tensor | None:
    """Returns N(x) = P(low < X ≤ x) by the kernel of masses, or None if that cannot take these."""
    if theta.dim() == 2 and x.dim() == 1 and low.numel() == 1 == high.numel():
        ends = low.view(1, 1), high.view(1, 1)
        found = _cdf_by_mass(theta.unsqueeze(0), x.unsqueeze(0), *ends, hidden)
        return None if found is None else found.squeeze(0)
    finite = bool(torch.isfinite(low).all() & torch.isfinite(high).all())
    if not finite or not _is_block(theta, (x,), low) or not native.usable(theta):
        return None
    mass = native.log_prob(theta, (low.expand_as(x), x), low, high, hidden).exp()
    return torch.where(x >= high, 1.0, mass.clamp(max=1)).masked_fill(torch.isnan(x), torch.nan)


def quantile(theta: Tensor, u: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns x with N(x) = u, differentiable while gradients are on; shapes as in `log_prob`."""
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
    """Returns quantiles by a kernel, and by `roots`, which never fails, where it found none."""
    theta = theta.expand(-1, len(u))
    inner = torch.where((u > 0) & (u < 1), u, 0.5)
    x, open_ = seek(theta, inner, low, high, hidden)
    if open_.any():
        at = network.normalized(theta[:, open_], low, high, hidden)
        x[open_] = roots.quantile(at, inner[open_], 1 - inner[open_])
    x = torch.where(u <= 0, low, torch.where(u >= 1, high, x))
    return torch.where(torch.isnan(u), torch.nan, x)


def _is_block(theta: Tensor, points: tuple[Tensor, ...], low: Tensor) -> bool:
    """Returns whether kernels can take these: columns of several rows, points without gradients."""
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
    """Evaluates a few columns at a time, so that their weights stay in the cache.

    Never in a lower precision: PNNs are differences of large numbers.
    """
    with full_precision(theta.device):
        if theta.dim() == 2:
            return function(network.normalized(theta, low, high, hidden), *points)
        size = max(1, PNNS_AT_ONCE // max(points[0].shape[-1], 1))
        parts = []
        for some in slices(len(theta), size):
            at = network.normalized(theta[some].movedim(1, 0), low[some], high[some], hidden)
            parts.append(function(at, *(point[some] for point in points)))
        return torch.cat(parts)
