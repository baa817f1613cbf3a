"""Draws power.csv.gz, 20,000 rows of UCI household power, from the published archive.

    NITS_DATA=folder python examples/data/draw.py

The archive is looked for at $NITS_DATA/power/household_power_consumption.zip. The same archive
gives the same rows.
"""

import gzip
import os
import sys
import zipfile
from pathlib import Path

import numpy as np

ROWS = 20_000
HEADER = (
    "active_power,reactive_power,voltage,intensity,"
    "sub_metering_1,sub_metering_2,sub_metering_3,minute"
)
TARGET = Path(__file__).with_name("power.csv.gz")


def complete_rows(archive: Path) -> list[str]:
    """Returns the rows without a missing value, in file order and as published."""
    with zipfile.ZipFile(archive) as zipped:
        text = zipped.read("household_power_consumption.txt").decode("ascii")
    return [row for row in text.splitlines()[1:] if "?" not in row]


def with_minute(row: str) -> str:
    """Drops the date and moves the time to the end, as the minute of the day."""
    _, time, *values = row.split(";")
    hours, minutes, _ = time.split(":")
    return ",".join([*values, str(60 * int(hours) + int(minutes))])


def main() -> int:
    """Writes power.csv.gz beside this script."""
    archive = Path(os.environ.get("NITS_DATA", "."), "power", "household_power_consumption.zip")
    if not archive.is_file():
        print(
            f"error: no file {archive}; set NITS_DATA to the folder that holds power/.",
            file=sys.stderr,
        )
        return 2
    rows = complete_rows(archive)
    drawn = np.random.default_rng(0).choice(len(rows), size=ROWS, replace=False)
    lines = [HEADER, *(with_minute(rows[i]) for i in drawn)]
    # mtime=0: no time stamp.
    TARGET.write_bytes(gzip.compress("\n".join([*lines, ""]).encode("ascii"), mtime=0))
    print(f"{TARGET.name}: {ROWS:,} of {len(rows):,} rows, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
