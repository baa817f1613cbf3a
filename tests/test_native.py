"""The kernels in C++ compute what `nits.pnn` defines, and models work without them."""

from __future__ import annotations

import ctypes
import math
import os
import stat
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import two_columns
from kernel_checks import assert_same
from laws import some_rows
from mixed_table import small
from nits import fit, kernels
from nits.heads import Atoms, Cells, Continuous, Inflated, Integer, Quantized
from nits.kernels import native
from nits.kernels.native import library
from nits.model.density import Density
from nits.places import cache_root
from nits.pnn import network
from nits.pnn.plain import parameters
from nits.weights import Independent
from registry import MODELS

pytestmark = pytest.mark.skipif(library.loaded() is None, reason="there is no g++ or no GNU OpenMP")

BUILT = list((cache_root() / "native").glob("kernels-*-*.so"))
"""What was built on this machine, before a test has another cache."""

SUPPORTS = [(-math.inf, math.inf), (-1.0, 2.0), (0.0, math.inf), (-math.inf, 0.5)]
HIDDEN = [(16, 16), (12,), (1,), (5, 3), (4, 4, 4)]
GRADIENT = {torch.float32: 2e-3, torch.float64: 1e-10}
VALUE = {torch.float32: 3e-5, torch.float64: 1e-12}


def problem(
    hidden: tuple[int, ...], support: tuple[float, float], n: int, scale: float
) -> tuple[Tensor, ...]:
    """Returns θ, shape (3, P, n), points of which some are ends, and the ends, all in float64."""
    generator = torch.Generator().manual_seed(n)
    shape = 3, parameters(hidden), n
    theta = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    x = 2 * torch.randn(3, n, generator=generator, dtype=torch.float64)
    low, high = (torch.full((3, 1), end, dtype=torch.float64) for end in support)
    x = torch.minimum(torch.maximum(x, low), high)
    return theta, x, low, high


def plain(theta: Tensor, x: Tensor, low: Tensor, high: Tensor, hidden: tuple[int, ...]) -> Tensor:
    return network.log_density(network.normalized(theta.movedim(1, 0), low, high, hidden), x)


def with_gradient(value: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    outer = torch.linspace(0.5, 2, value.numel(), dtype=value.dtype).view_as(value)
    return value.detach(), torch.autograd.grad((value * outer).sum(), theta)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("n", [2, 16, 37])
def test_densities_and_gradients_are_those_of_the_formulas(
    dtype: torch.dtype, hidden: tuple[int, ...], support: tuple[float, float], n: int
) -> None:
    theta, x, low, high = problem(hidden, support, n, 1.0)
    wanted = theta.clone().requires_grad_()
    expected = with_gradient(plain(wanted, x, low, high, hidden), wanted)
    rough = theta.to(dtype).requires_grad_()
    found = with_gradient(
        native.log_prob(rough, (x.to(dtype),), low.to(dtype), high.to(dtype), hidden), rough
    )
    torch.testing.assert_close(found[0].double(), expected[0], rtol=VALUE[dtype], atol=VALUE[dtype])
    error = (found[1].double() - expected[1]).norm(dim=1) / expected[1].norm(dim=1).clamp_min(1e-2)
    assert error.max() < GRADIENT[dtype]


@pytest.mark.parametrize("hidden", [(16, 16), (12,)])
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("scale", [0.0, 10.0, 100.0, 1e6])
def test_any_weights_give_a_finite_gradient_and_an_exact_density(
    hidden: tuple[int, ...], support: tuple[float, float], scale: float
) -> None:
    theta, x, low, high = (t.float() for t in problem(hidden, support, 64, scale))
    value = native.log_prob(theta.requires_grad_(), (x,), low, high, hidden)
    expected = plain(theta.detach().double(), x.double(), low.double(), high.double(), hidden)
    assert not value.isnan().any()
    close = (value.double() - expected).abs() <= 1e-2 + 1e-3 * expected.abs()
    assert close.float().mean() > 0.98  # of steep networks float32 cannot know every density
    value.sum().backward()
    assert theta.grad is not None
    assert theta.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("width", [1.0, 2.0**-10])
def test_masses_and_gradients_are_those_of_the_formulas(
    dtype: torch.dtype, hidden: tuple[int, ...], support: tuple[float, float], width: float
) -> None:
    theta, x, low, high = problem(hidden, support, 37, 1.0)
    ends = (x.clamp(-4.0, 4.0) / width).floor() * width  # which float32 has exactly
    points = torch.maximum(ends, low), torch.minimum(ends + width, high)
    wanted = theta.clone().requires_grad_()
    at = network.normalized(wanted.movedim(1, 0), low, high, hidden)
    expected = with_gradient(
        network.log_mass(at, *points).masked_fill(points[0] >= points[1], 0.0), wanted
    )
    rough, (s, t) = theta.to(dtype).requires_grad_(), (point.to(dtype) for point in points)
    value = native.log_prob(rough, (s, t), low.to(dtype), high.to(dtype), hidden)
    assert torch.equal(value.isinf(), s >= t)
    found = with_gradient(value.masked_fill(s >= t, 0.0), rough)
    torch.testing.assert_close(found[0].double(), expected[0], rtol=VALUE[dtype], atol=VALUE[dtype])
    error = (found[1].double() - expected[1]).norm(dim=1) / expected[1].norm(dim=1).clamp_min(1e-2)
    assert error.max() < GRADIENT[dtype]


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("hidden", [(16, 16), (12,), (8, 8)])
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_the_masses_of_256_bins_add_up_to_one(
    dtype: torch.dtype, error: float, hidden: tuple[int, ...], scale: float
) -> None:
    theta, _, low, high = (t.to(dtype) for t in problem(hidden, (-1.0, 2.0), 40, scale))
    edges = torch.linspace(-1.0, 2.0, 257, dtype=dtype)
    edges[0], edges[-1] = -1.0, 2.0
    masses = [
        native.log_prob(theta, (s.expand(3, 40), t.expand(3, 40)), low, high, hidden).exp()
        for s, t in pairwise(edges)
    ]
    assert (torch.stack(masses).sum(0) - 1).abs().max() < error


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-6), (torch.float64, 1e-12)])
def test_the_quantile_inverts_the_cdf(
    support: tuple[float, float], hidden: tuple[int, ...], dtype: torch.dtype, error: float
) -> None:
    theta, _, low, high = (t.to(dtype) for t in problem(hidden, support, 301, 1.0))
    u = torch.rand(3, 301, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(
        dtype
    )
    u[:, :4] = torch.tensor([1e-6, 1 - 1e-6, 0.5, 1e-3], dtype=dtype)
    for k in range(3):
        x, open_ = native.quantile(theta[k], u[k], low[k], high[k], hidden)
        assert not open_.any()
        assert ((x >= low[k]) & (x <= high[k])).all()
        back, _ = network.cdf(network.normalized(theta[k], low[k], high[k], hidden), x)
        assert (back - u[k]).abs().max() < error


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("hidden", [(16, 16), (12,)])
def test_no_quantile_of_a_steep_network_stays_open(
    support: tuple[float, float], hidden: tuple[int, ...]
) -> None:
    """Newton's steps alone creep up on some of these: their brackets must be halved by force."""
    theta, _, low, high = problem(hidden, support, 2000, 3.0)
    u = torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for k in range(3):
        _, open_ = native.quantile(theta[k], u[k], low[k], high[k], hidden)
        assert not open_.any()


def test_not_a_number_stays_so_and_alone() -> None:
    theta, x, low, high = problem((16, 16), (-1.0, 2.0), 20, 1.0)
    expected = native.log_prob(theta, (x,), low, high, (16, 16))
    x[0, 3], theta[1, :, 5] = math.nan, math.nan
    found = native.log_prob(theta, (x,), low, high, (16, 16))
    bad = torch.zeros_like(x, dtype=torch.bool)
    bad[0, 3] = bad[1, 5] = True
    assert torch.equal(found.isnan(), bad)
    assert torch.equal(found[~bad], expected[~bad])


def test_weights_may_lie_anywhere_in_memory() -> None:
    theta, x, low, high = problem((5, 3), (-1.0, 2.0), 33, 1.0)
    expected = native.log_prob(theta, (x,), low, high, (5, 3))
    turned = theta.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(native.log_prob(turned, (x,), low, high, (5, 3)), expected)
    wide = torch.cat([theta, theta], 2)[:, :, 33:]
    assert torch.equal(
        native.log_prob(wide, (x.t().contiguous().t(),), low, high, (5, 3)), expected
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    theta, x, low, high = problem((16, 16), (-1.0, 2.0), 100, 1.0)
    expected = native.log_prob(theta, (x,), low, high, (16, 16))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(native.log_prob(theta, (x,), low, high, (16, 16)), expected)
    finally:
        torch.set_num_threads(before)


class Recorded:
    """The library, which notes the kernels that are asked for."""

    def __init__(self, built: ctypes.CDLL | None, names: list[str]) -> None:
        self.built, self.names = built, names

    def __getattr__(self, name: str) -> Any:
        self.names.append(name.removesuffix("_float32").removesuffix("_float64"))
        return getattr(self.built, name)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that have run."""
    built, names = library.loaded(), list[str]()
    monkeypatch.setattr(library, "loaded", lambda: Recorded(built, names))
    return names


def kernels_of(model: Density) -> set[str]:
    """The kernels that the heads of a model call for, if each row has weights of its own."""
    if any(isinstance(module, Independent) for module in model.modules()):
        return set()
    massive = Quantized | Integer | Cells | Inflated
    return {"log_density" for head in model.heads if isinstance(head, Continuous | Atoms)} | {
        "log_mass" for head in model.heads if isinstance(head, massive)
    }


LAYERS = {"convolution", "gate", "lanes", "place", "pointwise", "signs"}
"""What the networks of images are trained by."""


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [2, 20])
def test_models_train_by_the_kernels(name: str, n: int, ran: list[str]) -> None:
    model = MODELS[name]()
    x, context = some_rows(model, n)
    ran.clear()
    with kernels.using(training=True):
        assert model.log_prob(x, context).requires_grad
        assert set(ran) - LAYERS == kernels_of(model)
        bounded = {"conv-channels", "conv-context", "dequantized"}
        assert set(ran) >= LAYERS or name not in bounded
        assert_same(model, n, {"native"} if kernels_of(model) else {"plain"})


@pytest.mark.parametrize("name", MODELS)
def test_models_score_and_sample_by_the_kernels(name: str, ran: list[str]) -> None:
    model = MODELS[name]()
    x, context = some_rows(model, 20)
    assert {"quantile"} <= set(ran) <= {"quantile", "log_mass"}  # by masses atoms find their place
    ran.clear()
    with torch.no_grad():
        model.log_prob(x, context)
    assert set(ran) == kernels_of(model)


def test_fit_trains_by_the_kernels(ran: list[str]) -> None:
    fit(two_columns.small(), two_columns.rows(), validation=0.0, max_steps=7, progress=False)
    assert ran == ["log_density"] * 7


def test_tables_are_scored_by_the_kernels(ran: list[str]) -> None:
    rows = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)).numpy()
    model = small(max_steps=2).fit(rows)
    ran.clear()
    model.score_samples(rows)
    assert set(ran) == {"log_density"}
    ran.clear()
    model.sample(30)
    assert set(ran) == {"quantile"}


def test_second_derivatives_are_refused() -> None:
    theta, x, low, high = problem((3,), (-1.0, 2.0), 2, 1.0)
    prob = native.log_prob(theta.requires_grad_(), (x,), low, high, (3,)).exp().sum()
    (gradient,) = torch.autograd.grad(prob, theta, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|not have been used in the graph"):
        torch.autograd.grad(gradient.sum(), theta)


@pytest.fixture
def new_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Nothing built yet, and an empty cache."""
    monkeypatch.setenv("NITS_CACHE", str(tmp_path))
    library.loaded.cache_clear()
    yield tmp_path
    library.loaded.cache_clear()


def test_the_kernels_are_built_once_and_kept(
    new_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert library.loaded() is not None
    (built,) = new_machine.glob("native/*")
    assert built.suffix == ".so"
    library.loaded.cache_clear()
    monkeypatch.setattr(library, "build", None)  # is not called again
    assert library.loaded() is not None


def test_a_compiler_that_fails_is_told_of_and_the_model_goes_on(
    new_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.warns(UserWarning, match="could not be built") as told:
        assert library.loaded() is None
    assert len(str(told[0].message).splitlines()) == 1
    assert not list(new_machine.glob("native/*"))
    monkeypatch.setattr(torch, "compile", lambda function, *, dynamic: function)
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 5)
    expected = model.log_prob(x)
    with kernels.using(compiled=True, training=True) as ran:
        torch.testing.assert_close(model.log_prob(x), expected, rtol=1e-4, atol=1e-4)
    assert ran == {"compiled"}


def test_a_compiler_that_is_not_there_is_told_of(
    new_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.warns(UserWarning, match="could not be built"):
        assert library.loaded() is None


def test_other_processors_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    before = library._key(["g++"], "libgomp.so.1")
    assert library._key(["g++", "-m64"], "libgomp.so.1") != before
    monkeypatch.setattr(library, "_features", lambda: "flags: none")
    assert library._key(["g++"], "libgomp.so.1") != before


FAKE = """#!/bin/sh
# A compiler that builds a library at once: this one, which the tests have built before.
case "$*" in *--version*) echo fake; exit 0;; esac
while [ $# -gt 1 ]; do shift; done
case "$1" in *.so) cp "$FAKE_BUILT" "$1"; echo built >> "$FAKE_LOG";; *) : > "$1";; esac
"""


@pytest.fixture
def builds(new_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Counts what was built, by a compiler that takes no time."""
    monkeypatch.setenv("NITS_CACHE", str(tmp_path / "cache"))
    compiler = tmp_path / "a folder" / "compiler"
    compiler.parent.mkdir()
    compiler.write_text(FAKE)
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", f"'{compiler}' -m64")
    monkeypatch.setenv("FAKE_BUILT", str(max(BUILT, key=os.path.getmtime)))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))

    def count() -> int:
        library.loaded.cache_clear()
        assert library.loaded() is not None
        return (tmp_path / "log").read_text().count("built")

    return count


def the_library(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache" / "native").iterdir()
    return found


def test_a_truncated_or_changed_library_is_built_again(
    builds: Callable[[], int], tmp_path: Path
) -> None:
    assert builds() == 1
    assert builds() == 1
    kept = the_library(tmp_path)
    whole = kept.read_bytes()
    for k, bad in enumerate((whole[:5000], b"", bytes([whole[0] ^ 1]) + whole[1:]), 2):
        kept.unlink()  # not the file that this process has mapped
        kept.write_bytes(bad)
        assert builds() == k
        assert the_library(tmp_path).read_bytes() == whole


def test_a_library_that_others_may_write_or_that_is_a_link_is_built_again(
    builds: Callable[[], int], tmp_path: Path
) -> None:
    assert builds() == 1
    kept = the_library(tmp_path)
    kept.chmod(0o720)
    assert builds() == 2
    (tmp_path / "elsewhere.so").write_bytes(kept.read_bytes())
    kept.unlink()
    kept.symlink_to(tmp_path / "elsewhere.so")
    assert builds() == 3
    assert not the_library(tmp_path).is_symlink()
    assert stat.S_IMODE(the_library(tmp_path).stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_another_user_owns_is_not_loaded(builds: Callable[[], int], tmp_path: Path) -> None:
    assert builds() == 1
    os.chown(the_library(tmp_path), 12345, 12345)
    assert builds() == 2
    os.chown(tmp_path / "cache" / "native", 12345, 12345)
    library.loaded.cache_clear()
    with pytest.warns(UserWarning, match="must be a folder that only you can write to, but is not"):
        assert library.loaded() is None


def test_a_folder_that_others_may_write_to_is_not_used(
    builds: Callable[[], int], tmp_path: Path
) -> None:
    assert builds() == 1
    (tmp_path / "cache" / "native").chmod(0o777)
    library.loaded.cache_clear()
    with pytest.warns(UserWarning, match="must be a folder that only you can write to, but is not"):
        assert library.loaded() is None


def test_what_a_killed_build_left_is_removed(builds: Callable[[], int], tmp_path: Path) -> None:
    left = tmp_path / "cache" / "native" / "building-abc"
    left.mkdir(parents=True, mode=0o700)
    left.parent.chmod(0o700)
    (left / "kernels.o").write_bytes(b"half")
    assert builds() == 1
    assert not left.exists()
