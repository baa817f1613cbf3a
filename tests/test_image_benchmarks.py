"""The benchmark of images, on images small enough for a test."""

from __future__ import annotations

import math
from pathlib import Path

import image_halves
import image_run
import models
import numpy as np
import pytest
import results
import trunk
from image_table import image_tables
from PIL import Image

from nits.datasets.images import Images
from pictures import bands

SMALL = {"filters": 5, "blocks": 2, "pnn": [4], "sampled": 4, "validation_images": 10}


def test_a_run_leaves_a_whole_record_and_a_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, validation, test = (bands(n, seed=n)[:, None] for n in (60, 10, 20))
    images = Images("bands", train, validation, test)
    original = models.settings
    monkeypatch.setattr(models, "settings", lambda *given: {**original(*given), **SMALL})
    monkeypatch.setitem(image_run.LOADERS, "fashion_mnist", lambda path: images)
    argv = ["fashion_mnist", "--minutes", "0.05", "--test-images", "15"]
    assert image_run.main(argv, tmp_path, tmp_path) == 0
    (found,) = results.read(tmp_path, "images-fashion_mnist-nits-0.05m-seed0.json")
    assert 1 < found["test_bits_per_dim"] < 9
    assert found["test_images"] == 15
    assert found["training_seconds"] < 10
    assert found["history"]
    assert {"command", "commit", "hardware", "versions"} <= found.keys()
    grid = np.asarray(Image.open(tmp_path / "samples-fashion_mnist-nits-0.05m.png"))
    assert grid.shape == (2 * 8 + 2, 2 * 7 + 2)
    assert "| fashion_mnist | convolutions | nits (4) | 0.05 |" in image_tables(tmp_path)
    windows = {"reach": 2, "hidden": 8, "blocks": 1}
    monkeypatch.setattr(models, "settings", lambda *given: {**original(*given), **SMALL, **windows})
    assert image_run.main([*argv, "--network", "windows"], tmp_path, tmp_path) == 0
    (found,) = results.read(tmp_path, "images-fashion_mnist-windows-nits-0.05m-seed0.json")
    assert 1 < found["test_bits_per_dim"] < 9
    assert "| fashion_mnist | windows | nits (4) | 0.05 |" in image_tables(tmp_path)


def test_halves_of_digits_are_compared(tmp_path: Path) -> None:
    every = image_halves.digits()
    assert [len(rows) for rows in every] == [1347, 150, 300]
    found = image_halves.measured(every._replace(test=every.test[:10]), 0.01, 1, 4)
    (mask,) = found["masks"]
    least = -32 * math.log(image_halves.LEVELS) * 2
    assert all(least < mask["each"][name] < 0 for name in ("mlp", "windows"))
    assert least < mask["joint"] < 0
    assert mask["mask"] == mask["each"][mask["model_of_the_mask"]]
    assert found["joint_over_mask"] == pytest.approx(mask["joint"] / mask["mask"])
    results.write(tmp_path / "image-halves.json", {"results": found})
    assert f"| 1 | {mask['joint']:.2f} |".replace("-", "−") in image_tables(tmp_path)


def test_a_trunk_is_compared_with_a_checkout_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trunk.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: base must be a checkout with src/nits in it.\n"
