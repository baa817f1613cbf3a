"""Same seed, same bits: no part of training reads or writes a global generator."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import nits
from mixed_table import small as small_table
from nits import NITSDensity, NITSImages
from nits.heads import Continuous
from nits.images.dequantized import Dequantized
from nits.training.loop import Loop
from nits.weights import ConvSize
from two_columns import QUICK, rows

SIZE = ConvSize(4, 2, (1,), dropout=0.3)
SHAPE = (1, 3, 4)


def network(dropout: float = 0.4, generator: int | None = 0) -> nits.NITS:
    heads = [Continuous(hidden=(6, 6), optional=True)] * 2
    return nits.NITS.mlp(heads, hidden=16, blocks=1, dropout=dropout, generator=generator)


def convolution(generator: int | None = 0) -> nits.NITS:
    return nits.NITS.conv(SHAPE, Continuous(0, 1, (4,)), size=SIZE, generator=generator)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two fits at once share the cores: with OpenMP's threads they would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


BUILT: dict[str, Callable[[int | None], nits.Density]] = {
    "independent": lambda seed: nits.NITS.independent([Continuous(hidden=(6,))] * 2, seed),
    "mlp": lambda seed: network(generator=seed),
    "mlp with a context": lambda seed: nits.NITS.mlp(2, hidden=8, context=3, generator=seed),
    "conv": convolution,
}


def state(density: nits.Density) -> Tensor:
    return torch.cat([t.flatten().double() for t in density.state_dict().values()])


def untouched(call: Callable[[], Any]) -> Any:
    """Calls a function, and checks that torch's and numpy's global generators stay as they were."""
    before, numbers = torch.random.get_rng_state(), np.random.get_state(legacy=False)  # noqa: NPY002
    found = call()
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_equal(np.random.get_state(legacy=False), numbers)  # noqa: NPY002
    return found


@pytest.mark.parametrize("name", BUILT)
def test_a_seed_decides_initial_weights(name: str) -> None:
    build = BUILT[name]
    same = [state(untouched(partial(build, seed))) for seed in (3, 3, 4)]
    assert torch.equal(same[0], same[1])
    assert not torch.equal(same[0], same[2])
    torch.manual_seed(3)
    assert torch.equal(state(build(None)), same[0])  # torch's generators are all of one kind


def images(seed: int, count: int = 40) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, 3, 4), dtype=np.uint8)


def fitted_table(seed: int) -> NITSDensity:
    options = {"dropout": 0.3, "max_steps": 12, "members": 2}
    return small_table(random_state=seed, **options).fit(rows(80, seed).numpy())


def fitted_images(seed: int) -> NITSImages:
    noise = "uniform" if seed % 2 else None
    model = NITSImages(size=SIZE, pnn=(4,), max_steps=12, random_state=seed, dequantize=noise)
    return model.fit(images(seed))


@pytest.mark.parametrize("fitted", [fitted_table, fitted_images])
def test_threads_that_fit_at_once_do_not_disturb_each_other(
    fitted: Callable[[int], Any],
) -> None:
    alone = [state(fitted(seed).model_) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        together = [state(model.model_) for model in pool.map(fitted, (1, 2))]
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(*alone) if alone[0].shape == alone[1].shape else True


@pytest.mark.parametrize("fitted", [fitted_table, fitted_images])
def test_fitting_leaves_global_generators_alone_and_takes_nothing_from_them(
    fitted: Callable[[int], Any],
) -> None:
    found = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        found.append(state(untouched(lambda: fitted(1)).model_))
    assert torch.equal(*found)


def test_loading_leaves_the_global_generator_alone(tmp_path: Any) -> None:
    for k, model in enumerate((network(), convolution(), fitted_table(0), fitted_images(0))):
        nits.save(model, tmp_path / f"{k}.nits")
        untouched(partial(nits.load, tmp_path / f"{k}.nits"))


def test_hidden_entries_are_the_seeds_alone() -> None:
    found = []
    for seed in (0, 0, 1):
        model, recipe = network(0.0), nits.Recipe(batch_size=64, hide=0.3)
        untouched(partial(_fit, model, recipe, seed))
        found.append(state(model))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def _fit(model: nits.NITS, recipe: nits.Recipe, seed: int = 0) -> None:
    nits.fit(model, rows(), validation=0.0, max_steps=5, recipe=recipe, seed=seed, progress=False)


def dropped(model: nits.Density) -> Tensor:
    width = model.columns
    with torch.no_grad():
        found: Tensor = model.train()(torch.full((8, width), 0.3))
    return found


@pytest.mark.parametrize("build", [network, convolution, lambda: Dequantized(convolution())])
def test_copies_and_pickles_keep_their_generators(build: Callable[[], nits.Density]) -> None:
    model = build()
    names = list(model.state_dict())
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(generator=torch.Generator().manual_seed(1))
    model.reseed(7)
    expected = dropped(model)
    assert not torch.equal(dropped(model), expected)
    model.reseed(7)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(dropped(copied), expected)
        assert list(copied.state_dict()) == names
    assert torch.equal(dropped(model), expected)  # copies have generators of their own


def test_without_a_seed_dropout_follows_the_global_generator() -> None:
    model = network()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(generator=torch.Generator().manual_seed(1))
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(dropped(model))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    model.reseed(0)
    untouched(lambda: dropped(model))
    model.reseed(None)
    torch.manual_seed(0)
    assert torch.equal(dropped(model), found[0])


def test_members_of_a_mixture_drop_different_units() -> None:
    model = nits.Mixture([network(), network()])
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.1)
    model.reseed(0)
    first, second = (dropped(member) for member in model.members)
    assert not torch.equal(first, second)


def test_a_fitted_model_has_no_generator_left() -> None:
    model = network()
    _fit(model, QUICK)
    assert model.weights.generator is None
    assert not model.training


def test_a_step_repeats() -> None:
    """The loop seeds each step by its number, not by what was drawn before."""
    from nits.training.recipe import Budget
    from nits.training.rows import Rows

    loop = Loop(network(), Rows(rows()), None, QUICK, Budget(max_steps=9), 0)
    loop.prepare(None)
    loop.model.train()
    values = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        loop.model.reseed(loop.step_seed())
        values.append(loop.gradient())
    assert values[0] == values[1]
