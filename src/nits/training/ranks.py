"""Processes that train one model together: each has a part of every batch.

They exchange one flat vector per step: the gradient of the part's sum of log-likelihoods, that sum,
the weight of its rows, the clock of the first rank, and whether somebody wants to stop. So all of
them take the same step, at the same time, and stop together; one process would take the same step,
but for rounding. torchrun starts them: see docs/scale.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, distributed

from nits.training.exchange import Gradient

WAITED_FOR = timedelta(minutes=10)
"""How long a rank that says nothing is waited for; one that has ended is noticed at once."""

EXTRAS = 4
"""Numbers beside the gradient: log-likelihood, weight, clock, wishes to stop."""

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets in the environment of each process."""


Item = TypeVar("Item")

_apart: ContextVar[bool] = ContextVar("apart", default=False)


class RankLost(RuntimeError):
    """Another rank has ended in the middle of training."""


class Step(NamedTuple):
    """What all ranks know after an exchange.

    value: The mean log-likelihood of the whole batch.
    seconds: The clock of the first rank.
    stop: Whether somebody wants to stop.
    """

    value: float
    seconds: float
    stop: bool


class Ranks:
    """The processes of a training run, and which of them this is.

    alone: Whether there is no other process.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.alone = size == 1
        self.waited = 0.0  # seconds that exchanges have taken

    def part(self, count: int) -> slice:
        """Returns which of so many rows are this rank's."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def exchange(
        self, gradient: Gradient, told: tuple[float, float, float], stop: bool, *, divided: bool
    ) -> Step:
        """Sums what all ranks have, and sets the gradient of the whole batch's mean.

        gradient: Of a model whose parameters have that of minus the sum of log-likelihoods of this
            rank's rows, with `EXTRAS` numbers beside it.
        told: That sum, the weight of the rows, and the clock, which is taken of the first rank.
        divided: Whether the gradient has been divided by the weight of all ranks' rows already.
        """
        seconds = told[2] if self.rank == 0 else 0.0
        gradient.collect(torch.tensor([told[0], told[1], seconds, float(stop)]))
        self._reduce(gradient.flat)
        value, weight, seconds, wishes = gradient.flat[gradient.count :].tolist()
        gradient.put_back(1 if divided else weight)
        return Step(value / weight, seconds, wishes > 0)

    def summed(self, *values: float) -> list[float]:
        """Returns the sums of numbers over all ranks."""
        if self.alone:
            return list(values)
        found = torch.tensor(values, dtype=torch.float64)
        self._reduce(found)
        return [float(value) for value in found]

    def _reduce(self, values: Tensor) -> None:
        if self.alone:
            return
        begun = time.perf_counter()
        with _noticed():
            distributed.all_reduce(values)
        self.waited += time.perf_counter() - begun

    def agreed(self, value: int) -> int:
        """Returns the first rank's number."""
        if self.alone:
            return value
        found = torch.tensor([value])
        with _noticed():
            distributed.broadcast(found, 0)
        return int(found)

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Puts the first rank's numbers into the tensors of all ranks."""
        if not self.alone:
            with _noticed(), torch.no_grad():
                for tensor in tensors:
                    distributed.broadcast(tensor, 0)

    def gathered(self, item: Item) -> list[Item]:
        """Returns what all ranks have, in their order; anything that can be pickled."""
        if self.alone:
            return [item]
        found: list[Any] = [None] * self.size
        with _noticed():
            distributed.all_gather_object(found, item)
        return found

    def together(self) -> None:
        """Waits until all ranks have come here."""
        if not self.alone:
            with _noticed():
                distributed.barrier()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Has the first rank run a block of code, and then the others."""
        if self.rank > 0:
            self.together()
        yield
        if self.rank == 0:
            self.together()


@contextmanager
def _noticed() -> Iterator[None]:
    """Turns what goes wrong when another rank is gone into `RankLost`."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise RankLost(f"another rank of this training run has ended ({reason})") from None


def current() -> Ranks:
    """Returns the processes that train together; this one alone if there is no group."""
    joined_ = distributed.is_available() and distributed.is_initialized()
    if _apart.get() or not joined_:
        return Ranks(0, 1)
    return Ranks(distributed.get_rank(), distributed.get_world_size())


@contextmanager
def apart() -> Iterator[None]:
    """Has each rank do by itself what a block of code does, as if there were no others."""
    token = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(token)


def is_launched() -> bool:
    """Returns whether torchrun has started this process, as one of several."""
    return all(name in os.environ for name in VARIABLES) and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def joined() -> Iterator[Ranks]:
    """Joins the other processes that torchrun has started, if there are any."""
    if not is_launched():
        yield Ranks(0, 1)
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, timeout=WAITED_FOR)
    try:
        yield current()
    finally:
        with suppress(RuntimeError):  # of a rank that is gone, which has been told of
            distributed.destroy_process_group()
