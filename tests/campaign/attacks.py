"""All attacks by name, and what each asks for."""

from collections.abc import Callable
from typing import NamedTuple

from campaign import (
    attack_commands,
    attack_disk,
    attack_files,
    attack_kernels,
    attack_tables,
    attack_together,
    attack_values,
    models,
)


class Attack(NamedTuple):
    """An attack.

    run: Runs a case by its number; returns "passed" or "refused", or raises Failure.
    cases: What a case is, in words.
    law: What must hold.
    prepare: Makes what all cases share.
    """

    run: Callable[[int], str]
    cases: str
    law: str
    prepare: Callable[[], object] = bool


ATTACKS = {
    "tables": Attack(
        attack_tables.run,
        "generated tables: fit, info, score the file, sample as four formats, score each, plot",
        "no traceback, no refusal of the model's own files, no step over 60 s of the processor",
    ),
    "values": Attack(
        attack_values.run,
        "calls from Python with hostile values, contexts, levels, weights and options",
        "refused in one sentence, or the value that was given is in all rows",
    ),
    "models": Attack(
        attack_files.run,
        "model files and checkpoints, damaged, or changed with a checksum that fits",
        "no other numbers, no raw exception, at most 1 GB and 5 s",
        models.folder,
    ),
    "signals": Attack(
        attack_commands.signalled,
        "INT, TERM or KILL at a random moment of fit, score and sample, in fresh processes",
        "nothing torn, nothing left after the next run, a checkpoint goes on bit for bit",
        attack_commands.folder,
    ),
    "disk": Attack(
        attack_disk.run,
        "each write of each command fails, from then on or once: disk full, read-only, quota",
        "inputs as they were, outputs whole or as they were, no model lost, one line",
        attack_disk.known,
    ),
    "kernels": Attack(
        attack_kernels.run,
        "kernels in the cache: cut short, changed, foreign, older, or for others to write",
        "never loaded: built again, or the plain way with one notice",
        attack_kernels.machine,
    ),
    "together": Attack(
        attack_together.run,
        "four threads and two processes that build, fit, score and draw at once",
        "the same bits as one after the other",
        attack_kernels.machine,
    ),
    "quota": Attack(
        attack_commands.starved,
        "fit, score and sample with a limit of bytes for each file",
        "one line, what was read or written before is unchanged",
        attack_commands.folder,
    ),
}
