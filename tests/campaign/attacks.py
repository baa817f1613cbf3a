"""All attacks by name; benchmarks/campaign_table.py says what a case of each is."""

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
    prepare: Makes what all cases share.
    """

    run: Callable[[int], str]
    prepare: Callable[[], object] = bool


ATTACKS = {
    "tables": Attack(attack_tables.run),
    "values": Attack(attack_values.run),
    "models": Attack(attack_files.run, models.folder),
    "signals": Attack(attack_commands.signalled, attack_commands.folder),
    "disk": Attack(attack_disk.run, attack_disk.known),
    "quota": Attack(attack_commands.starved, attack_commands.folder),
    "kernels": Attack(attack_kernels.run, attack_kernels.machine),
    "together": Attack(attack_together.run, attack_kernels.machine),
}
