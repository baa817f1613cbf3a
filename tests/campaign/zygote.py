"""A process that has loaded everything, and forks for each command: new processes in no time.

If there is a C compiler it can have writes to the folder of a command fail.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import matplotlib

from nits.places import cache_root

SECONDS = 300
"""After which a command counts as hung."""

SOURCE = Path(__file__).with_name("failing.c")

_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class Done(NamedTuple):
    """What a command did.

    code: Its exit code, negative if a signal ended it.
    writes: How many writes to its folder it tried.
    seconds: How long it took.
    """

    code: int
    out: str
    err: str
    writes: int
    seconds: float


class Sent(NamedTuple):
    """A signal, and the seconds after which it is sent."""

    number: int
    after: float


class Fault(NamedTuple):
    """Writes `first` to `last` fail with an error number; none do if they are 0."""

    first: int
    last: int
    error: int


NONE = Fault(0, 0, 0)
EVER = 10**9


TESTS = Path(__file__).resolve().parent.parent
"""Where a process of its own finds this package."""


class Zygote:
    """Runs commands, each in a process of its own."""

    def __init__(self) -> None:
        _folders.append(tempfile.TemporaryDirectory(prefix="nits-zygote-"))
        self.place = Path(_folders[-1].name)
        (self.place / "tmp").mkdir()
        self.preloaded = _compiled(self.place / "failing.so")
        # Models that cannot be saved go to the temporary folder, or home; caches stay.
        environment = dict.fromkeys(["TMPDIR", "HOME"], str(self.place / "tmp"))
        caches = {"NITS_CACHE": str(cache_root()), "MPLCONFIGDIR": matplotlib.get_cachedir()}
        environment = {**os.environ, **environment, **caches}
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        if self.preloaded is not None:
            environment["LD_PRELOAD"] = str(self.preloaded)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "campaign.zygote"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(
        self,
        cwd: Path,
        argv: Sequence[str],
        fault: Fault = NONE,
        sent: Sent | None = None,
        temporary: Path | None = None,
    ) -> Done:
        """Runs a command in a folder, which may be the one that cannot be written to.

        temporary: Where its temporary files go; by default not below that folder.
        """
        streams = [self.place / "out", self.place / "err"]
        ask = {"cwd": str(cwd), "argv": list(argv), "fault": fault, "sent": sent}
        ask["temporary"] = str(temporary or self.place / "tmp")
        ask["to"] = [str(stream) for stream in streams]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(ask), file=self.process.stdin, flush=True)
        code, writes, seconds = json.loads(self.process.stdout.readline())
        out, err = (stream.read_text(errors="replace") for stream in streams)
        return Done(code, out, err, writes, seconds)

    @property
    def rescue(self) -> Path:
        """The temporary folder of its commands."""
        return self.place / "tmp"


@cache
def zygote() -> Zygote:
    """Returns the one of this process."""
    return Zygote()


def _compiled(target: Path) -> Path | None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    flags = ["-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(target), "-ldl"]
    return target if subprocess.run([compiler, *flags], check=False).returncode == 0 else None


def _serve() -> None:
    """Forks for each line of standard input; answers with exit code, writes and seconds."""
    _load()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of a child that has not begun yet
    for line in sys.stdin:
        ask = json.loads(line)
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.close(read)
            _work(ask, write)
        os.close(write)
        start = time.monotonic()
        if ask["sent"] is not None:
            number, after = ask["sent"]
            time.sleep(after)
            os.kill(child, number)  # which is there, as nobody has waited for it
        with os.fdopen(read) as counted:
            writes = counted.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([status, int(writes or -1), time.monotonic() - start]), flush=True)


def _load() -> None:
    """Loads what the commands load."""
    for verb in ("fit", "impute", "outliers", "plot", "predict", "report", "sample", "score"):
        import_module(f"nits.cli.commands.{verb}")
    for name in ("nits.tables.estimator", "nits.cli.plots", "pandas", "pyarrow.csv", "torch"):
        import_module(name)


def _work(ask: dict[str, Any], count: int) -> NoReturn:
    """Runs a command in this process, and ends it."""
    code = 70
    try:
        for stream, path in enumerate(ask["to"], 1):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, stream)
        signal.alarm(SECONDS)
        os.chdir(ask["cwd"])
        tempfile.tempdir = ask["temporary"]
        code = _main(ask)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    if (preloaded := _preloaded()) is not None:
        writes = preloaded.nits_writes()
        preloaded.nits_fail(b"/", *NONE)
        os.write(count, str(writes).encode())
    os._exit(code)


def _main(ask: dict[str, Any]) -> int:
    from nits.cli.main import main

    if (preloaded := _preloaded()) is not None:
        preloaded.nits_fail(ask["cwd"].encode(), *ask["fault"])
    try:
        # From here on an interrupt is the command's; before, it ends the process.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return main(ask["argv"])
    except SystemExit as stop:
        return int(stop.code or 0)
    except KeyboardInterrupt as error:
        files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
        if main.__code__.co_filename in files:
            raise
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command had not begun
        os.kill(os.getpid(), signal.SIGINT)
        raise


def _preloaded() -> Any:
    whole = ctypes.CDLL(None)
    if not hasattr(whole, "nits_writes"):
        return None
    whole.nits_writes.restype = ctypes.c_long
    whole.nits_fail.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int]
    return whole


if __name__ == "__main__":
    _serve()
