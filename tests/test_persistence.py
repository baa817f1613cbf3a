"""One file per model: bitwise the same after loading, no training row in it, damage noticed."""

import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import save_file

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.model import storage


@pytest.fixture(scope="module")
def fitted() -> NITSDensity:
    return small().fit(mixed())


@pytest.fixture(scope="module")
def path(fitted: NITSDensity, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models") / "model.nits"
    fitted.save(place)
    return place


def test_a_loaded_model_is_the_same(fitted: NITSDensity, path: Path) -> None:
    table, again = mixed(), nits.load(path)
    assert np.array_equal(again.score_samples(table), fitted.score_samples(table))
    pandas.testing.assert_frame_equal(
        again.sample(20, random_state=3), fitted.sample(20, random_state=3)
    )
    assert again.schema_.columns == fitted.schema_.columns
    assert again.get_params() == fitted.get_params()
    assert again.held_out_ == fitted.held_out_


def test_a_conditional_model_too(tmp_path: Path) -> None:
    table = mixed()
    model = small(context=["city", "size"], support={"rain": (0.0, float("inf"))}).fit(table)
    model.save(tmp_path / "model.nits")
    again = nits.load(tmp_path / "model.nits")
    assert np.array_equal(again.score_samples(table), model.score_samples(table))
    assert again.support == {"rain": (0.0, float("inf"))}


def test_saving_again_gives_the_same_contents(path: Path, tmp_path: Path) -> None:
    nits.load(path).save(tmp_path / "again.nits")
    (tensors, about), (before, said) = (storage.read(p) for p in (tmp_path / "again.nits", path))
    assert about == said
    assert all(torch.equal(tensors[name], before[name]) for name in {*tensors, *before})


def test_the_file_holds_no_training_row(tmp_path: Path) -> None:
    """A number that occurs once and a text in a column that was dropped: neither is in the file."""
    table = mixed()
    table.loc[17, "size"] = 63.123456789
    small().fit(table).save(tmp_path / "model.nits")
    data = (tmp_path / "model.nits").read_bytes()
    assert b"63.12345" not in data
    assert np.float32(63.123456789).tobytes() not in data
    assert np.float64(63.123456789).tobytes() not in data


def test_permissions_and_no_leftovers(path: Path) -> None:
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert [p.name for p in path.parent.iterdir()] == ["model.nits"]


def loaded(path: Path) -> tuple[Any, str]:
    """The model, or the sentence that says why there is none."""
    try:
        return nits.load(path), ""
    except ValueError as error:
        return None, str(error)


def test_every_damage_is_noticed(path: Path, tmp_path: Path) -> None:
    """A thousand files with one byte altered: each gives one clear error, or the same model."""
    data, rng = path.read_bytes(), np.random.default_rng(0)
    place = tmp_path / "damaged.nits"
    reference = mixed(20)
    expected = nits.load(path).score_samples(reference)
    header = int.from_bytes(data[:8], "little") + 8
    places = [*rng.integers(0, len(data), 700), *rng.integers(0, header, 290), *range(10)]
    for at in places:
        damaged = bytearray(data)
        damaged[at] ^= int(rng.integers(1, 256))
        place.write_bytes(bytes(damaged))
        model, sentence = loaded(place)
        assert "\n" not in sentence
        if model is not None:
            assert np.array_equal(model.score_samples(reference), expected)


@pytest.mark.parametrize("length", [0, 4, 8, 100, 5000])
def test_a_truncated_file(path: Path, tmp_path: Path, length: int) -> None:
    place = tmp_path / "cut.nits"
    place.write_bytes(path.read_bytes()[:length])
    with pytest.raises(
        ValueError, match=r"cut.nits is not a model file of nits, or it is damaged \("
    ):
        nits.load(place)


def test_other_peoples_files(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(
        ValueError, match=r"other.safetensors is a safetensors file, but not one of nits"
    ):
        nits.load(tmp_path / "other.safetensors")
    (tmp_path / "pickle.nits").write_bytes(b"\x80\x04\x95cos\nsystem\n.")
    with pytest.raises(ValueError, match=r"pickle.nits is not a model file of nits"):
        nits.load(tmp_path / "pickle.nits")
    with pytest.raises(FileNotFoundError):
        nits.load(tmp_path / "none.nits")


def test_a_file_of_a_later_version(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "FORMAT", 2)
    nits.load(path).save(tmp_path / "later.nits")
    monkeypatch.setattr(storage, "FORMAT", 1)
    message = (
        "later.nits has format 2, but this version of nits reads up to 1; install a newer nits."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        nits.load(tmp_path / "later.nits")


def test_a_description_that_fits_no_model(path: Path, tmp_path: Path) -> None:
    tensors, about = storage.read(path)
    about["model"]["members"][0]["weights"]["model"]["hidden"] = 17
    words = json.dumps(about, sort_keys=True)
    metadata: dict[str, Any] = {"format": "nits", "version": "1", "about": words}
    metadata["sha256"] = storage.digest(tensors, words)
    save_file(tensors, tmp_path / "odd.nits", metadata)
    with pytest.raises(
        ValueError, match=r"odd.nits does not describe a model that this version can build"
    ):
        nits.load(tmp_path / "odd.nits")


GOLDEN = Path(__file__).parent / "data" / "golden-1.nits"


def test_a_file_of_the_first_version_is_still_read() -> None:
    model = nits.load(GOLDEN)
    expected = json.loads(GOLDEN.with_suffix(".json").read_text())
    np.testing.assert_allclose(model.score_samples(mixed(5)), expected["scores"], rtol=1e-5)


def test_a_table_with_codes_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nits.tables.defaults.CODES", ())
    x = np.random.default_rng(0).standard_normal((60, 3)).cumsum(1)
    model = NITSDensity(members=1, max_steps=3, random_state=0).fit(x)
    model.save(tmp_path / "coded.nits")
    (member,) = storage.read(tmp_path / "coded.nits")[1]["model"]["members"]
    assert member["weights"]["model"]["codes"] == 8
    monkeypatch.undo()
    again = nits.load(tmp_path / "coded.nits")
    assert np.array_equal(again.score_samples(x), model.score_samples(x))
    assert np.array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))


def rewritten(path: Path, place: Path, change: Callable[[Any, Any], Any]) -> Path:
    """Writes a changed model, with a checksum that fits."""
    tensors, about = storage.read(path)
    change(tensors, about)
    words = json.dumps(about, sort_keys=True)
    metadata: dict[str, Any] = {"format": "nits", "version": "1", "about": words}
    metadata["sha256"] = storage.digest(tensors, words)
    save_file(tensors, place, metadata)
    return place


def first_network(about: Any) -> Any:
    return about["model"]["members"][0]["weights"]["model"]


def deep(depth: int) -> Any:
    return [deep(depth - 1)] if depth else []


def poisoned(tensors: Any, value: float) -> None:
    name = next(n for n, t in tensors.items() if t.is_floating_point() and t.numel())
    tensors[name].view(-1)[0] = value


MALFORMED: dict[str, Callable[[Any, Any], Any]] = {
    "blocks must be an integer from 0": lambda t, a: first_network(a).update(blocks=2**31),
    "it asks for a network of": lambda t, a: first_network(a).update(hidden=4000, blocks=900),
    "hidden must be an integer from 1": lambda t, a: first_network(a).update(hidden=None),
    "codes must be an integer": lambda t, a: first_network(a).update(codes=[1]),
    "dropout must be a number in": lambda t, a: first_network(a).update(dropout=1e308),
    "there is no 'schema'": lambda t, a: a.pop("schema"),
    "order must name each of": lambda t, a: a["model"].update(order=[0, 0]),
    "rows must not be '\\[31m'": lambda t, a: a["schema"]["columns"][0]["facts"].update(
        rows="[31m"
    ),
    "the names of its columns": lambda t, a: a.update(names=["x"]),
    "not all finite numbers": lambda t, a: poisoned(t, torch.nan),
    "are not all finite": lambda t, a: poisoned(t, torch.inf),
    "knots must be": lambda t, a: a["model"]["members"][0].update(knots=deep(90)),
}


@pytest.mark.parametrize("message", MALFORMED)
def test_a_malformed_description_is_one_sentence(path: Path, tmp_path: Path, message: str) -> None:
    place = rewritten(path, tmp_path / "odd.nits", MALFORMED[message])
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"odd.nits does not describe .*{message}") as caught:
        nits.load(place)
    assert time.process_time() - start < 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", ["[]", "null", "{", "[" * 100_000, "9" * 5000])
def test_what_is_no_description_is_one_sentence(path: Path, tmp_path: Path, words: str) -> None:
    tensors, _ = storage.read(path)
    digest = storage.digest(tensors, words)
    metadata = {"format": "nits", "version": "1", "about": words, "sha256": digest}
    save_file(tensors, tmp_path / "odd.nits", metadata)
    with pytest.raises(ValueError, match=r"odd.nits has no description of a model \("):
        nits.load(tmp_path / "odd.nits")
