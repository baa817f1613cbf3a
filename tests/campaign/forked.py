"""Functions in processes of their own, several at once."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from campaign.steps import Failure


class Ended(NamedTuple):
    """What a process returned, or how it failed."""

    value: Any
    wrong: str | None


def at_once(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Returns what functions return, each run in a process of its own, all at the same time."""
    begun = [_begin(function) for function in functions]
    ended = [_end(child, read) for child, read in begun]
    for one in ended:
        if one.wrong is not None:
            raise Failure(one.wrong)
    return [one.value for one in ended]


def _begin(function: Callable[[], Any]) -> tuple[int, int]:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        try:
            answer = pickle.dumps(Ended(function(), None))
        except BaseException:
            answer = pickle.dumps(Ended(None, traceback.format_exc(limit=-3)))
        with os.fdopen(write, "wb") as stream:
            stream.write(answer)
        os._exit(0)
    os.close(write)
    return child, read


def _end(child: int, read: int) -> Ended:
    with os.fdopen(read, "rb") as stream:
        answer = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status or not answer:
        return Ended(None, f"the process ended with {status}")
    found: Ended = pickle.loads(answer)
    return found
