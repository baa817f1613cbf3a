"""The tables of SECURITY.md: what attacks have found, from results/campaign-*.json."""

from __future__ import annotations

import re
from pathlib import Path

import results
from markdown_table import table
from results import Record

ATTACKS = {
    "tables": (
        "generated tables: fit, info, score the file, sample as four formats, score each, plot",
        "no traceback, no refusal of the model's own files, no step over 60 s of the processor",
    ),
    "values": (
        "calls from Python with hostile values, contexts, levels, weights and options",
        "refused in one sentence, or the value that was given is in all rows",
    ),
    "models": (
        "model files and checkpoints, damaged, or changed with a checksum that fits",
        "no other numbers, no raw exception, at most 1 GB and 5 s",
    ),
    "signals": (
        "INT, TERM or KILL at a random moment of fit, score and sample",
        "nothing torn, nothing left after the next run, a checkpoint goes on bit for bit",
    ),
    "disk": (
        "each write of each command fails, from then on or once: disk full, read-only, quota",
        "inputs as they were, outputs whole or as they were, no model lost, one line",
    ),
    "quota": (
        "fit, score and sample with a limit of bytes for each file",
        "one line, what was read or written before is unchanged",
    ),
    "kernels": (
        "kernels in the cache: cut short, changed, foreign, older, or for others to write",
        "never loaded: built again, or the plain way with one notice",
    ),
    "together": (
        "four threads and two processes that build, fit, score and draw at once",
        "the same bits as one after the other",
    ),
}
"""What a case is, and what must hold, by attack."""

MEMORY, COLUMNS = "campaign-memory.json", "campaign-columns.json"


def campaign_tables(folder: Path) -> str:
    """Returns a line per attack that was run, and one per command whose memory was measured."""
    found = [one for one in results.read(folder, "campaign-*.json") if "attack" in one]
    lines = []
    for attack, (cases, law) in ATTACKS.items():
        runs = sorted((r for r in found if r["attack"] == attack), key=lambda r: str(r["date"]))
        if runs:
            count = f"{len(_cases(runs)):,}"
            lines.append((f"`{attack}`", cases, law, count, _failures(runs), _commits(runs)))
    head = ("attack", "a case is", "what must hold", "cases", "failures", "commit")
    parts = [table(head, lines)]
    parts += [_memory(record) for record in results.read(folder, MEMORY)]
    parts += [_columns(record) for record in results.read(folder, COLUMNS)]
    return "\n\n".join(parts)


def _cases(runs: list[Record]) -> set[int]:
    return {case for run in runs for case in range(run["first"], run["first"] + run["cases"])}


def _failed(run: Record) -> set[int]:
    return {int(re.findall(r"--case (\d+)", command)[0]) for command in run["failures"]}


def _failures(runs: list[Record]) -> str:
    """Returns how many cases fail still, and how many did before they were mended."""
    ever, now = set[int](), set[int]()
    for run in runs:
        ever |= _failed(run)
        now = now - _cases([run]) | _failed(run)
    mended = len(ever - now)
    return f"{len(now)}" + (f"; {mended} mended" if mended else "")


def _commits(runs: list[Record]) -> str:
    return ", ".join(dict.fromkeys(str(run["commit"])[:7] for run in runs))


def _memory(record: Record) -> str:
    figures = record["results"]
    head = (f"{figures['rows']:,} rows", "peak, MB", "after the first tenth of the output, over it")
    lines = [
        (name, f"{one['peak_mb']:.0f}", f"{one['later_over_first_tenth']:.2f}")
        for name, one in figures["commands"].items()
    ]
    return table(head, lines)


def _columns(record: Record) -> str:
    figures = record["results"]
    head = (f"{figures['columns']:,} columns, {figures['rows']:,} rows", "peak, MB")
    return table(
        head, [(name, f"{one['peak_mb']:.0f}") for name, one in figures["commands"].items()]
    )
