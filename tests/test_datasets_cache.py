"""Finding the files and keeping what was made of them."""

from pathlib import Path

import numpy as np
import pytest

from nits.datasets import cache as kept
from nits.datasets.cache import cached
from nits.datasets.source import data_file, data_folder, data_root
from nits.datasets.split import Split
from nits.places import cache_root


def small(value: float = 1.0) -> Split:
    part = np.full((3, 2), value, dtype=np.float32)
    return Split("small", part, part[:2], part[:1], ("a", "b"))


def never() -> Split:
    raise AssertionError("the split is kept and must not be made again")


def test_a_split_is_made_once_and_memory_mapped(tmp_path: Path) -> None:
    cached("small-v1", small, tmp_path)
    again = cached("small-v1", never, tmp_path)
    assert (again.name, again.columns) == ("small", ("a", "b"))
    for name in kept.PARTS:
        part = getattr(again, name)
        assert isinstance(part, np.memmap)
        assert not part.flags.writeable
        assert part.dtype == np.float32
        np.testing.assert_array_equal(part, getattr(small(), name))


def test_another_version_is_made_anew(tmp_path: Path) -> None:
    cached("small-v1", small, tmp_path)
    assert cached("small-v2", lambda: small(2.0), tmp_path).train[0, 0] == 2


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cached("small-v1", small, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_split_of_a_faster_process_stays(tmp_path: Path) -> None:
    def slow() -> Split:
        cached("small-v1", small, tmp_path)
        return small(2.0)

    assert cached("small-v1", slow, tmp_path).train[0, 0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["small-v1"]


def test_cache_errors(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        OSError, match=r"must be a folder that can be written, but .*; set NITS_CACHE"
    ):
        cached("small-v1", small, tmp_path / "file")
    cached("small-v1", small, tmp_path)
    (tmp_path / "small-v1" / "test.npy").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"must hold a whole split, but does not .*; delete that folder"
    ):
        cached("small-v1", never, tmp_path)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NITS_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
    assert cache_root(tmp_path / "other") == tmp_path / "other"
    monkeypatch.delenv("NITS_CACHE")
    assert cache_root() == Path.home() / ".cache" / "nits"


def test_where_the_data_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    assert data_root() == tmp_path
    (tmp_path / "other").mkdir()
    assert data_root(tmp_path / "other") == tmp_path / "other"
    with pytest.raises(
        FileNotFoundError, match=r"must hold a/b\.npy, but there is no such file; docs"
    ):
        data_file(None, "a", "b.npy")
    with pytest.raises(
        FileNotFoundError, match=r"must hold a/b, but there is no such folder; docs"
    ):
        data_folder(None, "a", "b")


def test_missing_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NITS_DATA", str(tmp_path / "gone"))
    with pytest.raises(
        FileNotFoundError, match="NITS_DATA must name the data folder, but there is no"
    ):
        data_root()
    with pytest.raises(
        FileNotFoundError, match="root must name the data folder, but there is no folder"
    ):
        data_root(tmp_path / "gone too")
    monkeypatch.delenv("NITS_DATA")
    with pytest.raises(FileNotFoundError, match="but neither is set; pass root= or set NITS_DATA"):
        data_root()
