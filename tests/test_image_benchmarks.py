"""The benchmarks of images, on images small enough for a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import image_run
import image_speed
import measure
import paper_size
import tables

from nits.datasets.images import Images
from pictures import bands

SMALL = {
    "filters": 5,
    "blocks": 2,
    "dilations": [1],
    "pnn": [4],
    "sampled": 4,
    "validation_images": 10,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Tiny images and sizes, and folders of their own."""
    train, validation, test = (bands(n, seed=n)[:, None] for n in (60, 10, 20))
    images = Images("bands", train, validation, test)
    original = image_run.settings
    monkeypatch.setattr(image_run, "settings", lambda *given: {**original(*given), **SMALL})
    monkeypatch.setitem(image_run.LOADERS, "fashion_mnist", lambda path: images)
    monkeypatch.setattr(image_run, "OUT", tmp_path / "out")
    monkeypatch.setattr(image_run, "PLOTS", tmp_path / "plots")
    return tmp_path


def test_a_run_leaves_a_whole_record_and_a_grid(small: Path) -> None:
    assert image_run.main(["fashion_mnist", "--minutes", "0.05", "--test-images", "15"], small) == 0
    found: dict[str, Any] = json.loads(
        (small / "images-fashion_mnist-nits-0.05m-seed0.json").read_text()
    )
    assert 1 < found["test_bits_per_dim"] < 9
    assert found["test_images"] == 15
    assert found["training_seconds"] < 10
    assert found["history"]
    assert {"command", "commit", "hardware", "versions"} <= found.keys()
    grid = np.asarray(Image.open(small / "plots" / "samples-fashion_mnist-nits-0.05m.png"))
    assert grid.shape == (2 * 8 + 2, 2 * 7 + 2)
    assert "| fashion_mnist | nits (4) | 0.05 |" in tables.image_table(small)


def test_an_unknown_head_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert image_run.main(["cifar10", "--minutes", "1", "--head", "gauss"]) == 2
    assert "--head must be one of nits, logistics, but is gauss" in capsys.readouterr().err


def test_every_data_set_has_settings_for_both_heads() -> None:
    for path in image_run.SETTINGS.glob("*.toml"):
        assert path.stem in image_run.LOADERS
        both = [image_run.settings(path.stem, head) for head in ("nits", "logistics")]
        assert [len(found.pop("pnn")) for found in both] == [2, 1]
        assert both[0] == both[1]


def test_cached_and_plain_sampling_draw_the_same_pixels() -> None:
    found = image_speed.measured((3, 4, 4), images=3, columns=48, rounds=2)
    assert found["pixels_compared"] == 144
    assert found["pixels_different"] == 0
    assert found["plain_over_cached"]["median"] > 0


def test_a_step_at_a_named_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    assert paper_size.main(["--size", "tiny", "--batch", "1"]) == 0
    found = json.loads((tmp_path / "paper_size.json").read_text())["results"]
    assert found["parameters"] > 1e6  # 3,072 columns have 320 biases each
    assert found["peak_gib"] > 0
