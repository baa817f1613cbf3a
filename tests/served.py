"""A running `nits explore`, for tests that speak to it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Served:
    """A server: its address, its process, and where what it says of errors goes."""

    address: str
    process: subprocess.Popen[str]
    errors: Path

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    @property
    def token(self) -> str:
        return self.address.split("/")[3]

    def memory(self) -> float:
        """Returns the megabytes of memory that the server holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextmanager
def served(folder: Path, *what: str) -> Iterator[Served]:
    """Serves a model, and perhaps a table, until the end; it must then end by itself."""
    command = [sys.executable, "-m", "nits", "explore", *what, "--no-browser"]
    errors = folder / "errors.txt"
    with (
        errors.open("w") as sink,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield Served(process.stdout.readline().strip(), process, errors)
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(90)
        assert ended == 0
