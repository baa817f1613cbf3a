"""Whether there is memory for a table's networks: a table too wide is refused before any work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nits.heads import Continuous
from nits.pnn.plain import parameters
from nits.tables.defaults import Plan
from nits.tables.frames import Frame, Values

COPIES = 6
"""Weights, their gradient, their average, the best of it, and two numbers that AdamW keeps."""

PASSES = 4
"""The PNN weights of a batch, their gradient, and about as much again inside a PNN."""

FLOAT = 4
"""Bytes of a weight."""

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux tells a container how much memory it may use."""


def refuse_too_wide(frame: Frame, context: Sequence[str], plan: Plan) -> None:
    """Refuses a table whose networks do not fit into memory.

    context: Columns that are given, not modelled.
    plan: Its sizes; it is at least as wide as there are columns that vary.
    """
    memory = available()
    given = set(context)
    modelled = [values for name, values in frame.columns.items() if name not in given]
    if memory is None or needed(len(modelled), plan) <= memory:
        return
    count = sum(map(_varies, modelled))
    sized = plan._replace(hidden=min(plan.hidden, max(count, 1)))
    if (bytes_ := needed(count, sized)) > memory:
        raise ValueError(
            f"a network of {count} columns must fit into memory, but needs about "
            f"{bytes_ / 2**30:.0f} GB, and there are {memory / 2**30:.0f}; leave columns out, or "
            "model some at a time and name the others that they depend on in context=."
        )


def needed(columns: int, plan: Plan) -> int:
    """Returns about how many bytes the training of the largest network takes, and its lines."""
    pnn = max((style.pnn for style in plan.styles), key=parameters)
    head = Continuous(hidden=pnn, knots=plan.knots)
    hidden, outputs = plan.hidden, columns * head.weights
    read = hidden * columns * head.inputs + 2 * plan.blocks * hidden**2
    if plan.codes is None:
        last = outputs * hidden
    else:
        last = columns * plan.codes * hidden + outputs * plan.codes
    return FLOAT * (COPIES * (read + last) + PASSES * (plan.batch_size * outputs + columns**2))


def available() -> int | None:
    """Returns the bytes of memory of this machine, or of this container; None if unknown."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(whole, int(GROUP_LIMIT.read_text()))
    except (OSError, ValueError):
        return whole


def _varies(values: Values) -> bool:
    """Returns whether a column is no constant, as far as a glance tells."""
    known = values.known
    return bool(len(known)) and (len(known) < len(values) or bool((known[1:] != known[0]).any()))
