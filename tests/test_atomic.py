"""Files that appear whole or not at all."""

import os
import stat
import threading
from pathlib import Path

import pytest

from nits import atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_honours_the_umask(tmp_path: Path, umask: int, expected: int) -> None:
    before = os.umask(umask)
    try:
        atomic.write(tmp_path / "a", b"words")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"words"
    assert mode(tmp_path / "a") == expected


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    with atomic.temporary(tmp_path / "a") as place:
        assert mode(place) == 0o600
    assert mode(tmp_path / "a") == 0o600


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


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "b").write_bytes(b"old")
    (tmp_path / "a").symlink_to(Path("there") / "b")
    atomic.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "there" / "b").read_bytes() == b"new"


def test_a_link_to_nothing_creates_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    atomic.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    atomic.write(tmp_path / "pipe", b"words")
    reader.join(10)
    assert read == [b"words"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no devices")
def test_a_device_is_written_to() -> None:
    atomic.write(Path("/dev/null"), b"words")
    atomic.try_out(Path("/dev/null"))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_stale_files_of_the_same_name_are_removed(tmp_path: Path) -> None:
    others = [".b.0a.part", ".a.txt", ".[a.0a.part"]
    for name in [".a.0a.part", ".a.1b.part", *others]:
        (tmp_path / name).write_bytes(b"half")
    atomic.try_out(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)
    atomic.write(tmp_path / "[a", b"words")
    assert not (tmp_path / ".[a.0a.part").exists()


def test_what_another_is_writing_is_not_stale(tmp_path: Path) -> None:
    with atomic.temporary(tmp_path / "a") as first:
        first.write_bytes(b"one")
        atomic.write(tmp_path / "a", b"two")
        assert (tmp_path / "a").read_bytes() == b"two"
        assert first.read_bytes() == b"one"
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_written_is_said_before(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="must be a file to write, but is a folder"):
        atomic.try_out(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the folder .*none does not exist; create it\."):
        atomic.try_out(tmp_path / "none" / "a")
    long = tmp_path / ("a" * 250)
    with pytest.raises(OSError, match=r"cannot be written: File name too long\."):
        atomic.try_out(long)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_read_only_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(PermissionError, match="is read-only; name another file"):
        atomic.write(tmp_path / "a", b"new")
