"""Commands that a signal or a quota ends, in fresh processes, at moments by a seed.

After a signal nothing half-written may lie under a final name, after the next run of the same
command nothing else may be left, and a fit with a checkpoint must end with the bits of one that
nobody disturbed. If a write fails, what was there before must be there still, and the error must be
one line.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import torch
from pyarrow import csv, parquet

import nits
from campaign.steps import Failure, contents
from campaign.zygote import Done, Sent, zygote
from mixed_table import mixed

ROWS, DRAWN, SECONDS = 120, 70_000, 600
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
FIT = ["--members", "3", "--max-steps", "30", "--quiet"]

FRESH = 10
"""Of so many signals one goes to a process that began with nothing loaded; others are forked."""

VERBS = {
    "fit": ["fit", "t.csv", "-o", "out.nits", *FIT, "--checkpoint", "kept"],
    "fit, no checkpoint": ["fit", "t.csv", "-o", "out.nits", *FIT],
    "score": ["score", "m.nits", "many.csv", "-o", "out.csv", "--quiet"],
    "sample csv": ["sample", "m.nits", "-n", str(DRAWN), "-o", "out.csv", "--seed", "1", "--quiet"],
    "sample parquet": [
        "sample", "m.nits", "-n", str(DRAWN), "-o", "out.parquet", "--seed", "1", "--quiet",
    ],
    "sample a folder": [
        "sample", "m.nits", "-n", str(DRAWN), "-o", "out/", "--seed", "1", "--quiet",
    ],
    "score a folder": ["score", "m.nits", "files", "-o", "out/", "--quiet"],
}  # fmt: skip


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends
_usual: dict[str, float] = {}
"""Seconds that commands take once everything is loaded, if they are left alone."""


@cache
def folder() -> Path:
    """Returns a folder with tables, a model, and what each command writes if it is left alone."""
    _folders.append(tempfile.TemporaryDirectory(prefix="nits-campaign-"))
    place = Path(_folders[-1].name)
    table = mixed(ROWS)[["size", "count"]]
    table.to_csv(place / "t.csv", index=False)
    mixed(DRAWN)[["size", "count"]].to_csv(place / "many.csv", index=False)
    (place / "files").mkdir()
    os.link(place / "many.csv", place / "files" / "a.csv")
    made = zygote().run(place, ["fit", "t.csv", "-o", "m.nits", "--max-steps", "5", "--quiet"])
    if made.code:
        raise RuntimeError(made.err)
    for name, argv in VERBS.items():
        before = set(place.iterdir())
        done = zygote().run(place, argv)
        _usual[name] = done.seconds
        if done.code:
            raise RuntimeError(f"{name}: {done.err}")
        (place / name).mkdir()
        for path in set(place.iterdir()) - before - {place / name}:
            path.rename(place / name / path.name)
    return place


def _command(argv: list[str]) -> list[str]:
    return [sys.executable, "-m", "nits", *argv]


def signalled(seed: int) -> str:
    """Ends a command by a signal, and runs it again; returns "passed" or raises Failure."""
    chance = random.Random(seed)
    verb, number = chance.choice(sorted(VERBS)), chance.choice(SIGNALS)
    with tempfile.TemporaryDirectory() as name:
        place, old = _copy(Path(name), verb, chance)
        after = chance.uniform(0, 1.05) * _usual[verb]
        if seed % FRESH == 0:
            error = _ended(place, VERBS[verb], number, after)
        else:
            error = zygote().run(place, VERBS[verb], sent=Sent(number, after)).err
        wrong = _torn(place, verb, old) or _complaint(error)
        if wrong is None:
            whole = _output(place, verb).is_dir()  # the signal came when all was done
            done = zygote().run(place, VERBS[verb])
            wrong = _complaint(done.err) or _refused(done, whole)
            wrong = wrong or _different(place, verb) or _left(place)
    if wrong is not None:
        raise Failure(f"{verb}, {number.name}: {wrong}")
    return "passed"


def _refused(done: Done, whole: bool) -> str | None:
    """Returns how a command has failed that should not have, or the reverse.

    whole: Whether it is to write a folder that is there and has files, which it must refuse.
    """
    if whole:
        told = done.code == 2 and "a new or an empty folder" in done.err
        return None if told else f"{done.code}, though there is such a folder: {done.err}"
    return f"{done.code}: {done.err}" if done.code else None


def starved(seed: int) -> str:
    """Runs a command that may write only so many bytes to a file; raises Failure."""
    chance = random.Random(seed)
    verb = chance.choice(sorted(VERBS))
    most = int(10 ** chance.uniform(0, 6.5))
    with tempfile.TemporaryDirectory() as name:
        place, old = _copy(Path(name), verb, chance)
        inputs = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
        done = subprocess.run(
            _command(VERBS[verb]), cwd=place, capture_output=True, text=True, timeout=SECONDS,
            check=False, preexec_fn=lambda: _limit(most),
        )  # fmt: skip
        wrong = _torn(place, verb, old) or _complaint(done.stderr)
        for each in ("t.csv", "many.csv", "m.nits"):
            if (place / each).read_bytes() != inputs[each]:
                wrong = f"{each} was changed"
        if done.returncode and done.stderr.count("error:") != 1:
            wrong = wrong or f"no error of one line, but {done.stderr!r}"
        if not done.returncode:
            wrong = wrong or _different(place, verb)
    if wrong is not None:
        raise Failure(f"{verb}, {most} bytes: {wrong}")
    return "refused" if done.returncode else "passed"


def _limit(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _copy(place: Path, verb: str, chance: random.Random) -> tuple[Path, bytes | None]:
    """Returns a folder with the inputs, and what the output's name had before, if anything."""
    (place / "files").mkdir()
    for name in ("t.csv", "many.csv", "m.nits", "files/a.csv"):
        os.link(folder() / name, place / name)
    if chance.random() < 0.5 or VERBS[verb][VERBS[verb].index("-o") + 1].endswith("/"):
        return place, None  # of folders only new ones are written
    _output(place, verb).write_bytes(b"old")
    return place, b"old"


def _output(place: Path, verb: str) -> Path:
    argv = VERBS[verb]
    return place / argv[argv.index("-o") + 1]


def _ended(place: Path, argv: list[str], number: signal.Signals, after: float) -> str:
    """Starts a command, sends a signal some time after torch is loaded, and returns its errors."""
    process = subprocess.Popen(
        _command(argv), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=_heeding,
    )  # fmt: skip
    maps, deadline = Path(f"/proc/{process.pid}/maps"), time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if "libtorch" in maps.read_text():
            break
        time.sleep(0.02)
    time.sleep(after)
    process.send_signal(number)
    return process.communicate(timeout=SECONDS)[1]


def _heeding() -> None:
    """Has Ctrl-C come through, which a shell has what it starts in the background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _complaint(error: str) -> str | None:
    marks = ("Traceback", "Exception ignored")
    return error if any(mark in error for mark in marks) else None


def _torn(place: Path, verb: str, old: bytes | None) -> str | None:
    """Returns whether the output is neither what it was nor whole."""
    output = _output(place, verb)
    if not output.exists():
        return None if old is None else "what was there is gone"
    if output.is_file() and output.read_bytes() == old:
        return None
    try:
        if output.suffix == ".nits":
            nits.load(output)
        else:
            read = csv.read_csv if output.suffix == ".csv" else parquet.read_table
            if read(output).num_rows != DRAWN:
                return "the output has too few rows"
    except Exception as error:
        return f"the output is torn: {error}"
    return None


def _different(place: Path, verb: str) -> str | None:
    """Returns whether an output differs from that of the same command if it is left alone."""
    pair = _output(place, verb), _output(folder() / verb, verb)
    if pair[0].suffix != ".nits":
        return None if contents(pair[0]) == contents(pair[1]) else "another output"
    states = [nits.load(path).model_.state_dict() for path in pair]
    same = states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )
    return None if same else "another model"


def _left(place: Path) -> str | None:
    """Returns what is left of a run, besides inputs, outputs and the checkpoint."""
    left = [*place.rglob(".*.part"), *place.rglob("rescued-*"), *zygote().rescue.glob("nits-*")]
    return f"left behind: {[str(path) for path in left]}" if left else None
