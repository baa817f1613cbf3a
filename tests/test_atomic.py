"""Files that appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from nits import atomic


def test_a_file_is_written_and_readable_by_all(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a", b"words")
    assert (tmp_path / "a").read_bytes() == b"words"
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o644


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a", b"old")

    def interrupted() -> None:
        with atomic.temporary(tmp_path / "a") as place:
            place.write_bytes(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
