"""Compiled kernels give the eager numbers; without a compiler there is one notice and no error."""

import shutil
import warnings
from collections.abc import Iterator

import pytest
import torch

from kernel_checks import assert_same
from laws import some_rows
from nits import kernels
from nits.heads import Continuous, Head, Quantized
from nits.kernels import compiled
from registry import MODELS, SMALL, mlp, randomized, real

NOTICE = "no C\\+\\+ compiler was found"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    compiled.available.cache_clear()
    yield
    compiled.available.cache_clear()


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """torch.compile's kernels before compilation, and no others, so that tests take seconds."""
    made: list[object] = []

    def keep(function: object, *, dynamic: bool) -> object:
        made.append(function)
        return function

    monkeypatch.setattr(torch, "compile", keep)
    monkeypatch.setattr(compiled, "available", lambda: True)
    compiled._kernel.cache_clear()
    with kernels.using(native=False, compiled=True, training=True):
        yield made
    compiled._kernel.cache_clear()


def test_a_missing_compiler_is_noticed_once(no_compiler: None) -> None:
    with pytest.warns(UserWarning, match=NOTICE):
        assert not compiled.available()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compiled.available()


def test_without_a_compiler_the_model_goes_on(no_compiler: None) -> None:
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 5)
    expected = model.log_prob(x)
    with kernels.using(native=False, compiled=True, training=True) as ran:
        with pytest.warns(UserWarning, match=NOTICE):
            assert torch.equal(model.log_prob(x), expected)
        assert torch.equal(model.log_prob(x), expected)
    assert ran == {"plain"}


@pytest.mark.parametrize("compiler", ["g++", "clang++", "c++"])
def test_any_compiler_will_do(monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == compiler else None)
    compiled.available.cache_clear()
    assert compiled.available()
    compiled.available.cache_clear()


@pytest.mark.parametrize("n", [2, 127, 128, 129, 512, 1100])
@pytest.mark.parametrize("name", ["mlp-supports", "mlp-quantized"])
def test_blocks_change_nothing(uncompiled: list[object], name: str, n: int) -> None:
    assert_same(MODELS[name](), n, {"compiled"})
    assert uncompiled


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_the_kernels(uncompiled: list[object], name: str) -> None:
    independent = name.startswith("independent")  # whose weights are the same for all rows
    model = MODELS[name]()
    some_rows(model, 20)  # which may sample
    uncompiled.clear()
    assert_same(model, 20, {"plain"} if independent else {"compiled"})
    assert bool(uncompiled) != independent


def test_one_row_and_gradients_in_x_go_the_plain_way(uncompiled: list[object]) -> None:
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 3)
    uncompiled.clear()
    with kernels.using() as ran:
        model.log_prob(x[:1])
        (gradient,) = torch.autograd.grad(model.log_prob(x.requires_grad_()).sum(), x)
    assert (gradient != 0).all()
    assert ran == {"plain"}


def test_heads_of_one_kind_share_a_kernel(uncompiled: list[object]) -> None:
    heads: list[Head] = [
        Continuous(0.0, 1.0, SMALL),
        Continuous(hidden=SMALL),
        Quantized(0.0, 1.0, 4, SMALL),
        Continuous(-1.0, 1.0, SMALL),
        Quantized(0.0, 2.0, 4, SMALL),
        Quantized(0.0, 2.0, 5, SMALL),
    ]
    model = randomized(lambda: mlp(heads), 1)
    with kernels.using(compiled=False):
        some_rows(model, 20)
    assert_same(model, 20, {"compiled"})
    assert len(uncompiled) == 2 * 2  # with the gradient and without, for densities and for masses


def test_a_second_backward_gives_the_same(uncompiled: list[object]) -> None:
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 4)
    loss, parameters = model.log_prob(x).sum(), [p for p in model.parameters() if p.numel()]
    once, again = (torch.autograd.grad(loss, parameters, retain_graph=True) for _ in range(2))
    torch.testing.assert_close(once, again, rtol=0, atol=0)
    assert uncompiled


def test_second_derivatives_are_refused(uncompiled: list[object]) -> None:
    """The kernels have the first derivative only, and refuse a second one, which would be wrong."""
    theta = torch.linspace(-1, 1, 18).view(1, 9, 2).requires_grad_()
    ends = torch.tensor([[-torch.inf]]), torch.tensor([[torch.inf]])
    prob = compiled.log_prob(theta, (torch.zeros(1, 2),), *ends, (3,)).exp().sum()
    (gradient,) = torch.autograd.grad(prob, theta, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|not have been used in the graph"):
        torch.autograd.grad(gradient.sum(), theta)


@pytest.fixture
def really_compiled() -> Iterator[None]:
    """No kernel is there yet, and none but those of torch.compile may be used."""
    compiled._kernel.cache_clear()
    with kernels.using(native=False, compiled=True, training=True):
        yield
    compiled._kernel.cache_clear()


# One small network and one size of blocks each: making a kernel takes half a minute, and what does
# not depend on the compiler is tested above.


@pytest.mark.slow
def test_compiled_kernels_give_the_eager_numbers(really_compiled: None) -> None:
    hidden = (3, 2)
    heads: list[Head] = [
        Continuous(0.1, 0.9, hidden),
        Continuous(hidden=hidden),
        Quantized(0.0, 1.0, 4, hidden),
        Quantized(-1.0, 1.0, 4, hidden),
    ]
    assert_same(randomized(lambda: mlp(heads), 1), 130, {"compiled"})
    assert compiled._kernel.cache_info().currsize == 2 * 2


@pytest.mark.slow
def test_compiled_kernels_work_in_float64(really_compiled: None) -> None:
    model = randomized(lambda: mlp(real(2, (3,))), 1).double()
    assert_same(model, 130, {"compiled"})
    assert compiled._kernel.cache_info().currsize == 2
