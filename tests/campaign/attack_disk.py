"""A disk that is full, read-only or over its quota, at every write of every command.

Each case is a command, one of its writes, and an error, from that write on or just once. What was
read must be as it was, an output must be what it was or whole, an error must be one line, and what
was learned must be in a file that the error names, if not in the one that was wanted.
"""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import nits
from campaign.steps import Failure, contents
from campaign.zygote import EVER, NONE, Done, Fault, zygote
from mixed_table import mixed

FIT = ["--max-steps", "3", "--quiet", "-o", "out.nits"]

VERBS: dict[str, list[str]] = {
    "fit": ["fit", "t.csv", *FIT],
    "fit with a checkpoint": ["fit", "t.csv", *FIT, "--members", "2", "--checkpoint", "kept"],
    "fit of images": ["fit", "images", *FIT, "--size", "tiny", "--pnn", "4"],
    "score": ["score", "m.nits", "t.csv", "-o", "out.csv", "--quiet"],
    "sample csv": ["sample", "m.nits", "-n", "50", "-o", "out.csv", "--seed", "1", "--quiet"],
    "sample gz": ["sample", "m.nits", "-n", "50", "-o", "out.csv.gz", "--seed", "1", "--quiet"],
    "sample parquet": [
        "sample", "m.nits", "-n", "50", "-o", "out.parquet", "--seed", "1", "--quiet",
    ],
    "impute": ["impute", "m.nits", "t.csv", "-o", "out.csv", "--seed", "1", "--quiet"],
    "outliers": ["outliers", "m.nits", "t.csv", "-o", "out.csv", "--quiet"],
    "report": ["report", "m.nits", "t.csv", "-o", "out.html", "--quiet"],
    "plot": ["plot", "m.nits", "t.csv", "-o", "figures"],
    "predict": [
        "predict", "m.nits", "t.csv", "--column", "size", "-o", "out.csv", "--quiet",
    ],
    "fit of files": ["fit", "files", *FIT],
    "score files": ["score", "m.nits", "files", "-o", "out/", "--quiet"],
    "sample files": ["sample", "m.nits", "-n", "50", "-o", "out/", "--seed", "1", "--quiet"],
    "score images": ["score", "i.nits", "images", "-o", "out.csv", "--quiet"],
    "sample a grid": ["sample", "i.nits", "-n", "4", "-o", "out.png", "--seed", "1", "--quiet"],
    "sample an array": ["sample", "i.nits", "-n", "4", "-o", "out.npy", "--seed", "1", "--quiet"],
}  # fmt: skip

BEFORE_TRAINING = {"fit": 1, "fit with a checkpoint": 7, "fit of images": 1, "fit of files": 38}
"""Writes of a fit before it has learned anything: it tries the output out, begins a folder, and
copies files of CSV."""

TEMPORARY = "temporary"
"""Where temporary files go, so that they cannot be written either."""

ERRORS = (errno.ENOSPC, errno.EROFS, errno.EDQUOT)
INPUTS = ("t.csv", "m.nits", "i.nits", "images", "files")
RESCUED = re.compile(r"the model is in (\S+) instead\.")

_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class Known(NamedTuple):
    """What all cases share: the inputs, what each command writes if it can, and how often."""

    place: Path
    whole: dict[str, dict[str, bytes]]
    writes: dict[str, int]

    def picked(self, case: int) -> tuple[str, Fault]:
        """Returns the command and the fault of a case; after all writes the next sort of fault."""
        sort, k = divmod(case, sum(self.writes.values()))
        for verb, count in self.writes.items():
            if k < count:
                last = k + 1 if sort % 4 == 1 else EVER
                return verb, Fault(k + 1, last, ERRORS[(sort + k) % len(ERRORS)])
            k -= count
        raise ValueError(case)


@cache
def known() -> Known:
    """Makes the inputs, and runs every command undisturbed."""
    _folders.append(tempfile.TemporaryDirectory(prefix="nits-campaign-"))
    place = Path(_folders[-1].name)
    mixed(60)[["size", "count", "city"]].to_csv(place / "t.csv", index=False)
    (place / "files").mkdir()
    for name in ("a.csv", "b.csv"):
        shutil.copy(place / "t.csv", place / "files" / name)
    _draw(place / "images")
    for source, model in (("fit", "m.nits"), ("fit of images", "i.nits")):
        argv = [model if part == "out.nits" else part for part in VERBS[source]]
        if zygote().run(place, argv).code:
            raise RuntimeError("the models of the disk attack cannot be fitted")
    whole, writes = {}, {}
    for verb, argv in VERBS.items():
        with tempfile.TemporaryDirectory() as folder:
            there = _copied(place, Path(folder))
            done = zygote().run(there, argv, NONE, temporary=there / TEMPORARY)
            if done.code or done.writes < 0:
                raise RuntimeError(f"{verb}: {done.err or 'no C compiler'}")
            whole[verb] = contents(_output(there, verb))
            writes[verb] = done.writes
    return Known(place, whole, writes)


def _draw(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(8):
        Image.fromarray(rng.integers(0, 256, (4, 4), np.uint8)).save(folder / f"{k}.png")


def _copied(source: Path, place: Path) -> Path:
    shutil.copytree(source, place, dirs_exist_ok=True)
    (place / TEMPORARY).mkdir()
    return place


def run(case: int) -> str:
    """Runs a case and returns "passed" or "refused"; raises Failure."""
    verb, fault = known().picked(case)
    with tempfile.TemporaryDirectory() as folder:
        place = _copied(known().place, Path(folder))
        old = case % 2 == 0 and bool(_output(place, verb).suffix)
        if old:
            _output(place, verb).write_bytes(b"old")
        for left in zygote().rescue.glob("rescued-*"):
            left.unlink()
        done = zygote().run(place, VERBS[verb], fault, temporary=place / TEMPORARY)
        wrong = _wrong(verb, fault, place, old, done)
    if wrong:
        raise Failure(f"{verb}, {fault}: {wrong}")
    return "refused" if done.code else "passed"


def _wrong(verb: str, fault: Fault, place: Path, old: bool, done: Done) -> str | None:
    for name in INPUTS:
        if contents(place / name) != contents(known().place / name):
            return f"{name} was changed"
    if done.code not in (0, 2) or "Traceback" in done.err or "Exception" in done.err:
        return f"it ended with {done.code}: {done.err}"
    if done.code and done.err.count("error:") != 1:
        return f"no error of one line, but {done.err!r}"
    if done.code and not _named(verb, done.err):
        return f"the error names no file: {done.err!r}"
    left = [*place.rglob(".*.part"), *(place / TEMPORARY).glob("nits-*")]
    if left:
        return f"left behind: {left}"
    if verb == "plot":
        return None
    return _lost(verb, fault, place, done) or _torn(verb, place, old, done)


def _named(verb: str, words: str) -> bool:
    """Returns whether an error names what could not be written."""
    names = ("figures",) if verb == "plot" else ("out.", "out/", "kept", TEMPORARY)
    return any(name in words for name in names)


def _torn(verb: str, place: Path, old: bool, done: Done) -> str | None:
    """Returns whether the output is neither what it was nor whole."""
    output = _output(place, verb)
    if not output.exists():
        return "what was there is gone" if old or not done.code else None
    found = contents(output)
    if done.code:
        return None if old and found == {"": b"old"} else "there is an output though it failed"
    if verb.startswith("fit"):
        return None if _same(output, known().whole[verb][""]) else "another model"
    return None if verb == "report" or found == known().whole[verb] else "another output"


def _lost(verb: str, fault: Fault, place: Path, done: Done) -> str | None:
    """Returns whether what was learned is nowhere."""
    if not done.code or fault.first <= BEFORE_TRAINING.get(verb, EVER):
        return None
    named = RESCUED.search(done.err)
    if named is None:
        return f"the model is lost: {done.err!r}"
    rescued = place / named[1]
    whole = known().whole[verb][""]
    return None if _same(rescued, whole) else "the model that was saved is another"


def _same(path: Path, whole: bytes) -> bool:
    """Returns whether a model is the one of a fit that nothing disturbed."""
    expected = zygote().place / "expected.nits"
    expected.write_bytes(whole)
    models = [nits.load(one) for one in (path, expected)]
    states = [model.model_.state_dict() for model in models]
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )


def _output(place: Path, verb: str) -> Path:
    argv = VERBS[verb]
    return place / argv[argv.index("-o") + 1]
