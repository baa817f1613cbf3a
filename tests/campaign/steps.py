"""Runs `nits` in this process, and says what went wrong: tracebacks, refusals, hangs, controls."""

import contextlib
import io
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from nits.cli.main import main

MOST_SECONDS = 60
"""Seconds of the processor that a command may take."""

WAITED = 120
"""Seconds after which it must have used the processor, however busy that is with other work."""

WORKED = 0.05
"""Seconds of the processor in that time, from which a command counts as one that works."""


class Failure(Exception):
    """A case that went wrong; the words say how."""


class Hang(BaseException):
    """Raised by the alarm; nothing of ours catches it."""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


def nits(*args: str) -> Outcome:
    """Runs a command; a traceback, a hang or a control character on the terminal is a failure."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    try:
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with _alarm(), streams[0], streams[1], warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            code = _code(list(args))
    except Hang as hang:
        raise Failure(f"{args[0]} {hang}") from None
    except Exception as error:
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "nits" in f.filename]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in ours[:-6:-1])
        what = f"{type(error).__name__}: {str(error)[:300]}"
        raise Failure(f"{args[0]} raised {what} ({where})") from None
    if code and "interrupted" in err.getvalue():  # SIGTERM was meant for the campaign
        raise KeyboardInterrupt
    out.flush()
    written = out.buffer
    text = written.getvalue().decode() if isinstance(written, io.BytesIO) else ""
    found = Outcome(code, text, err.getvalue())
    shown = found.err + (found.out if args[0] == "info" else "")
    odd = sorted({c for c in shown if not c.isprintable() and c not in "\n"})
    if odd:
        raise Failure(f"{args[0]} shows the control characters {odd}")
    return found


def well(*args: str) -> Outcome:
    """Runs a command that must succeed."""
    found = nits(*args)
    if found.code != 0:
        raise Failure(f"{args[0]} refuses: {found.err.strip()[-600:]}")
    return found


def _code(args: list[str]) -> int:
    try:
        return main(args)
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Raises Hang after too many seconds of the processor, and if it is not used for long."""
    used = time.process_time()

    def ring(_: int, __: FrameType | None) -> None:
        raise Hang(f"took more than {MOST_SECONDS} s of the processor")

    def look(_: int, __: FrameType | None) -> None:
        nonlocal used
        before, used = used, time.process_time()
        if used - before < WORKED:
            raise Hang(f"did nothing for {WAITED} s")

    handlers = {signal.SIGALRM: look, signal.SIGPROF: ring}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    signal.setitimer(signal.ITIMER_REAL, WAITED, WAITED)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def contents(place: Path) -> dict[str, bytes]:
    """Returns the bytes of a file, or of the files of a folder by their names."""
    if place.is_file():
        return {"": place.read_bytes()}
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


def clock() -> float:
    """Returns seconds."""
    return time.perf_counter()


def progress(text: str) -> None:
    """Shows a line on stderr."""
    print(text, file=sys.stderr, flush=True)
