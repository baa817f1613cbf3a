"""Processes and threads at once: they build kernels, fit, score and draw with the same bits.

A case is four small fits by a seed. They run one after the other, then in four threads, then by
the command line in two processes that begin with an empty cache of kernels.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from campaign import attack_kernels
from campaign.forked import at_once
from campaign.steps import Failure
from mixed_table import mixed, small
from nits.kernels.native import library
from nits.persistence import load

THREADS, PROCESSES = 4, 2
COLUMNS = ["size", "count", "city"]


def run(case: int) -> str:
    """Runs a case and returns "passed"; raises Failure."""
    seeds = [THREADS * case + k for k in range(THREADS)]
    alone = [_fitted(seed) for seed in seeds]
    with ThreadPoolExecutor(THREADS) as threads:
        at_the_same_time = list(threads.map(_fitted, seeds))
    for seed, one, other in zip(seeds, alone, at_the_same_time, strict=True):
        if one != other:
            raise Failure(f"seed {seed} has other bits beside other threads")
    with tempfile.TemporaryDirectory() as folder:
        _commands(Path(folder), case)
    return "passed"


def _fitted(seed: int) -> tuple[bytes, bytes, str]:
    """Returns a model's weights, its scores and its samples."""
    table = mixed(60 + seed % 7)[COLUMNS]
    model = small(max_steps=4, random_state=seed).fit(table)
    drawn = model.sample(20, random_state=seed)
    scores = np.asarray(model.score_samples(drawn)).tobytes()
    return _weights(model), scores, drawn.to_csv(index=False)


def _weights(model: Any) -> bytes:
    state = model.model_.state_dict()
    return b"".join(name.encode() + state[name].numpy().tobytes() for name in sorted(state))


def _commands(place: Path, case: int) -> None:
    """Compares commands that run at once with the same ones after each other."""
    for k in range(PROCESSES):
        mixed(50 + k)[COLUMNS].to_csv(place / f"{k}.csv", index=False)
    first = [at_once([_job(place, k, case, "alone")])[0] for k in range(PROCESSES)]
    jobs = [_job(place, k, case, "together") for k in range(PROCESSES)]
    if at_once(jobs) != first:
        raise Failure("commands of two processes give other bits at once")


def _job(place: Path, k: int, case: int, cache: str) -> Any:
    def job() -> list[bytes]:
        folder = place / f"{cache}-{k}"
        folder.mkdir()
        os.chdir(folder)
        attack_kernels.new_machine(place / cache)
        steps = (
            f"fit ../{k}.csv -o m.nits --max-steps 3 --seed {case} --quiet",
            f"score m.nits ../{k}.csv -o s.csv --quiet",
            f"sample m.nits -n 30 --seed {case} -o d.parquet --quiet",
        )
        for step in steps:
            _ran(step.split())
        if library.loaded() is None:
            raise Failure("kernels were not built")
        written = [(folder / name).read_bytes() for name in ("s.csv", "d.parquet")]
        return [_weights(load("m.nits")), *written]  # the file tells the seconds, too

    return job


def _ran(argv: list[str]) -> None:
    from nits.cli.main import main

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        if main(argv):
            raise Failure(errors.getvalue())
