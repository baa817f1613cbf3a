"""What may evaluate PNNs: decided by the user, for a process or for a block of code, and noted when it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import torch

VARIABLE = "NITS_KERNELS"
"""Environment variable that lists what may be used, such as `native,compiled`; `plain` for neither."""

NATIVE, COMPILED, PLAIN = "native", "compiled", "plain"


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
