"""`NITSImages`: what users see of NITS-CONV."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import estimator_checks

import nits
from nits import NITSImages
from nits.images import arrays
from nits.weights import SIZES, ConvSize
from pictures import bands

TINY = ConvSize(filters=6, blocks=2, dilations=(1,))


def small(**changes: Any) -> NITSImages:
    chosen: dict[str, Any] = {
        "size": TINY,
        "pnn": (6, 6),
        "max_steps": 60,
        "learning_rate": 1e-2,
        "random_state": 0,
    }
    return NITSImages(**(chosen | changes))


@pytest.fixture(scope="module")
def fitted() -> NITSImages:
    return small(max_steps=150, levels=250).fit(bands(400))


@pytest.fixture(scope="module")
def coloured() -> NITSImages:
    return small().fit(bands(100, channels=3), labels=np.arange(100) % 2)


def test_it_learns_and_tells_nats_as_bits(fitted: NITSImages) -> None:
    images = bands(50, seed=1)
    nats = fitted.score_samples(images)
    assert nats.shape == (50,)
    assert fitted.bits_per_dim(images) == pytest.approx(-nats.mean() / (30 * math.log(2)))
    assert (
        fitted.bits_per_dim(images) < 6
    )  # 8 without any knowledge, log2(6) = 2.6 with all there is
    assert fitted.held_out_ == pytest.approx(fitted.bits_per_dim(images), abs=0.5)


def test_surprise_is_each_pixels_share(fitted: NITSImages) -> None:
    images = bands(5, seed=1)
    images[0, 4, 2] = 0  # a black pixel in the light half
    bits = fitted.surprise(images)
    assert bits.shape == images.shape
    np.testing.assert_allclose(
        -bits.sum((1, 2)) * math.log(2), fitted.score_samples(images), rtol=1e-5
    )
    assert np.unravel_index(bits[0].argmax(), bits[0].shape) == (4, 2)


def test_samples_are_images_like_those_seen(fitted: NITSImages) -> None:
    drawn = fitted.sample(40, random_state=1)
    assert drawn.shape == (40, 6, 5)
    assert drawn.dtype == np.uint8
    assert np.array_equal(drawn, fitted.sample(40, random_state=1))
    assert not np.array_equal(drawn, fitted.sample(40, random_state=2))
    light, dark = drawn[:, 4:].mean(), drawn[:, :2].mean()
    assert 80 < light - dark < 160


def test_completions_keep_the_upper_half_and_follow_it(fitted: NITSImages) -> None:
    images = bands(40, seed=3)
    known = np.zeros((6, 5), bool)
    known[:4] = True
    filled = fitted.complete(images, known, random_state=0)
    assert np.array_equal(filled[:, :4], images[:, :4])
    assert not np.array_equal(filled[:, 4:], images[:, 4:])
    assert np.corrcoef(filled[:, 5].mean(1), images[:, 3].mean(1))[0, 1] > 0.7


def test_what_is_known_may_lie_anywhere(fitted: NITSImages) -> None:
    """Rows of these images grow lighter downwards: known lower rows say what the upper ones are."""
    images = bands(12, seed=3)
    known = np.zeros((12, 6, 5), bool)
    known[:6, 3:] = True
    known[6:, :, 2] = True
    filled = fitted.complete(images, known, random_state=0)
    assert np.array_equal(filled[known], images[known])
    found = fitted.completions(images, known, random_state=0, particles=32)
    assert found.images.shape == (12, 32, 6, 5)
    assert (found.images == images[:, None])[np.broadcast_to(known[:, None], (12, 32, 6, 5))].all()
    assert not found.exact.any()
    assert (found.ess >= 1).all()
    assert (found.ess < 32).all()
    assert (found.ancestors >= 1).all()
    first = np.zeros((6, 5), bool)
    first[:2] = True
    assert fitted.completions(images[:2], first, particles=3).exact.all()
    assert np.array_equal(filled, fitted.complete(images, known, random_state=0))


def test_colours_and_labels(coloured: NITSImages) -> None:
    assert coloured.sample(3, labels=[0, 1, 1]).shape == (3, 6, 5, 3)
    images = bands(4, channels=3)
    assert coloured.surprise(images, labels=[0, 0, 1, 1]).shape == images.shape
    with pytest.raises(ValueError, match="fitted with labels, but got none"):
        coloured.sample(3)
    with pytest.raises(
        ValueError, match="labels must be among those of training, 0, 1, but one is 7"
    ):
        coloured.score_samples(images, labels=[0, 7, 1, 1])
    with pytest.raises(ValueError, match="one per image"):
        coloured.score_samples(images, labels=[0.5] * 4)


def test_tensors_and_whole_floats_are_images_too(fitted: NITSImages) -> None:
    images = bands(3)
    for same in (torch.from_numpy(images), images.astype(np.float64), images[..., None]):
        assert np.array_equal(fitted.score_samples(same), fitted.score_samples(images))


def test_the_continuous_model_gives_a_bound() -> None:
    model = small(dequantize="uniform", max_steps=150).fit(bands(400))
    images = bands(50, seed=1)
    assert model.bits_per_dim(images, draws=16) < model.bits_per_dim(images, draws=1)
    assert model.bits_per_dim(images) < 6
    assert model.sample(2, random_state=0).dtype == np.uint8


@pytest.mark.parametrize("model", ["fitted", "coloured"])
def test_a_loaded_model_is_the_same(
    model: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    before: NITSImages = request.getfixturevalue(model)
    before.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    labels = None if before.classes_ is None else [0, 1]
    images = bands(2, channels=before.shape_[0])
    assert np.array_equal(again.score_samples(images, labels), before.score_samples(images, labels))
    assert np.array_equal(again.sample(2, 5, labels), before.sample(2, 5, labels))
    assert (again.size, again.held_out_) == (before.size, before.held_out_)


def noisy(count: int, seed: int) -> NDArray[np.uint8]:
    """Images of 4 × 3 pixels with 16 levels: a grey of their own, and as much noise."""
    random = np.random.default_rng(seed)
    level, noise = random.integers(0, 8, (count, 1, 1)), random.integers(0, 8, (count, 4, 3))
    return (level + noise).astype(np.uint8)


def test_a_file_of_the_first_version_is_still_read(tmp_path: Path) -> None:
    golden = Path(__file__).parent / "data" / "golden-images-1.nits"
    expected = json.loads(golden.with_suffix(".json").read_text())
    model = nits.load(golden)
    found = model.score_samples(noisy(3, 1), labels=[0, 1, 1])
    np.testing.assert_allclose(found, expected["scores"], rtol=1e-5)
    assert model.held_out_ == expected["held_out"]
    model.save(tmp_path / "again.nits")
    again = nits.load(tmp_path / "again.nits")
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.score_samples(noisy(3, 1), labels=[0, 1, 1]), found)


def test_a_file_has_all_parameters_but_the_path_of_the_checkpoint(tmp_path: Path) -> None:
    model = small(max_steps=2, checkpoint=tmp_path / "run.safetensors", dropout=0.1)
    model.fit(bands(20)).save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert again.get_params() == {**model.get_params(), "checkpoint": None}
    assert str(tmp_path).encode() not in (tmp_path / "m.nits").read_bytes()


CHECKS = (  # those of scikit-learn that need no data, which would be tables
    "estimator_cloneable",
    "estimator_tags_renamed",
    "valid_tag_types",
    "estimator_repr",
    "no_attributes_set_in_init",
    "do_not_raise_errors_in_init_or_set_params",
    "mixin_order",
    "parameters_default_constructible",
    "get_params_invariance",
    "set_params",
)


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_contract(name: str) -> None:
    getattr(estimator_checks, f"check_{name}")("NITSImages", small())


def test_a_clone_has_the_parameters_and_nothing_learned(fitted: NITSImages) -> None:
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "model_")
    assert again.set_params(levels=9).levels == 9
    assert fitted.levels == 250


def test_what_is_not_fitted_says_so(tmp_path: Path) -> None:
    asked: dict[str, tuple[Any, ...]] = {
        "score_samples": (bands(2),),
        "score": (bands(2),),
        "bits_per_dim": (bands(2),),
        "surprise": (bands(2),),
        "sample": (1,),
        "complete": (bands(2), np.ones((6, 5), bool)),
        "save": (tmp_path / "m.nits",),
    }
    for method, arguments in asked.items():
        with pytest.raises(NotFittedError, match="This NITSImages instance is not fitted yet"):
            getattr(small(), method)(*arguments)
    model = small(size="huge")
    with pytest.raises(ValueError, match="size must be one of"):
        model.fit(bands(4))
    with pytest.raises(NotFittedError):
        model.sample(1)


def test_fitting_sets_only_what_ends_in_an_underscore(fitted: NITSImages) -> None:
    learned = set(vars(fitted)) - set(fitted.get_params())
    assert learned == {"shape_", "classes_", "model_", "history_", "held_out_"}


def test_it_goes_through_scikit_learns_tools(fitted: NITSImages) -> None:
    images = bands(40)
    assert fitted.score(images) == pytest.approx(fitted.score_samples(images).mean())
    labels = np.arange(40) % 2
    assert len(cross_val_score(small(max_steps=2), images, labels, cv=2)) == 2
    search = GridSearchCV(small(max_steps=2), {"pnn": [(2,), (3,)]}, cv=2).fit(images)
    assert search.best_params_["pnn"] in ((2,), (3,))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.score_samples(images), fitted.score_samples(images))


def test_a_fit_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    first = small(max_steps=10, checkpoint=place).fit(bands(60))
    assert place.exists()
    again = small(max_steps=20, checkpoint=place).fit(bands(60))
    assert (first.history_["step"][-1], again.history_["step"][0]) == (
        10,
        first.history_["step"][0],
    )
    assert again.history_["step"][-1] == 20


def test_a_folder_of_pictures(fitted: NITSImages, tmp_path: Path) -> None:
    images = bands(4)
    for k, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
    assert np.array_equal(fitted.score_samples(tmp_path), fitted.score_samples(images))


WRONG = {
    "shares": (np.full((4, 6, 5), 0.5), "integers from 0 to 255"),
    "too large": (np.full((4, 6, 5), 300), "integers from 0 to 255"),
    "negative": (np.full((4, 6, 5), -1), "integers from 0 to 255"),
    "nan": (np.full((4, 6, 5), math.nan), "integers from 0 to 255"),
    "channels first": (np.zeros((4, 3, 6, 5), np.uint8), "move the channels to the end"),
    "one image": (np.zeros((6, 5), np.uint8), r"must have shape \(N, H, W\)"),
    "none": (np.zeros((0, 6, 5), np.uint8), "at least one"),
    "other size": (
        np.zeros((2, 7, 5), np.uint8),
        "6 × 5 pixels with 1 channel, as in training",
    ),
    "colours": (np.zeros((2, 6, 5, 3), np.uint8), "but have 6 × 5 pixels with 3 channels"),
    "levels": (np.full((4, 6, 5), 255), "values below 250, but hold 255"),
    "no folder": ("nowhere", "there is no folder nowhere"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_images_get_a_sentence(name: str, fitted: NITSImages) -> None:
    images, message = WRONG[name]
    with pytest.raises((ValueError, OSError), match=message):
        fitted.score_samples(images)


def test_texts_are_no_images(fitted: NITSImages) -> None:
    with pytest.raises(TypeError, match="images must be uint8"):
        fitted.score_samples(np.full((2, 6, 5), "a"))


def test_other_mistakes_get_a_sentence(fitted: NITSImages) -> None:
    for change, message in (
        ({"size": "huge"}, "size must be one of tiny, small"),
        ({"dequantize": "normal"}, "dequantize must be None"),
        ({"dequantize": "uniform", "levels": 9, "pnn": (2,)}, "below 9"),
        ({"dequantize": "uniform", "levels": 255}, "levels must be 256 if pixels have noise"),
    ):
        with pytest.raises(ValueError, match=message):
            small(**change).fit(bands(4))
    with pytest.raises(ValueError, match="at least 2"):
        small().fit(bands(1))
    with pytest.raises(ValueError, match="fitted without labels, but got some"):
        fitted.sample(2, labels=[0, 1])
    with pytest.raises(
        ValueError,
        match=r"booleans of shape \(6, 5\), or of 2 such masks, but is float64 of shape \(30,\)",
    ):
        fitted.complete(bands(2), np.ones(30))
    with pytest.raises(ValueError, match="particles must be"):
        fitted.completions(bands(2), np.ones((6, 5), bool), particles=0)


def test_the_papers_sizes_have_the_papers_weights() -> None:
    present = torch.ones(8, 8)
    present[7, 7] = 0
    patches = nits.NITS.conv(
        (1, 8, 8), nits.heads.Continuous(), size=SIZES["paper-bsds300"], present=present
    )
    assert sum(p.numel() for p in patches.parameters()) == pytest.approx(3.8e6, rel=0.02)
    size = SIZES["paper-cifar10"]
    assert isinstance(size, nits.weights.ConvSize)
    with torch.device("meta"):
        cifar = nits.weights.CausalConv([1] * 3072, [320] * 3072, shape=(3, 32, 32), size=size)
    assert sum(p.numel() for p in cifar.parameters()) == pytest.approx(53e6, rel=0.02)


def test_a_grid_shows_every_image_once() -> None:
    images = np.stack([np.full((3, 4), k, np.uint8) for k in range(5)])
    picture = arrays.grid(images, columns=2, gap=1)
    assert picture.shape == (3 * 4 + 1, 2 * 5 + 1)
    values, counts = np.unique(picture, return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4, 255]
    assert counts[:5].tolist() == [12] * 5


def test_windows_are_fitted_saved_and_drawn_from(tmp_path: Path) -> None:
    window = nits.weights.WindowSize(2, 12, 1)
    model = small(size=window, learning_rate=None, precision="bfloat16").fit(bands(100))
    assert model._recipe().learning_rate == window.rate
    assert isinstance(model.model_, nits.NITS)
    assert isinstance(model.model_.weights, nits.weights.CausalWindow)
    assert model.bits_per_dim(bands(50, seed=1)) < 7
    model.save(tmp_path / "window.nits")
    again = nits.load(tmp_path / "window.nits")
    assert again.get_params()["size"] == window
    np.testing.assert_array_equal(again.score_samples(bands(5)), model.score_samples(bands(5)))
    np.testing.assert_array_equal(again.sample(3, random_state=1), model.sample(3, random_state=1))


def test_precision_is_named_or_none() -> None:
    with pytest.raises(ValueError, match="precision must be None or 'bfloat16', but is 'half'"):
        small(precision="half").fit(bands(20))
