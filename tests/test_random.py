"""Random numbers: in the open interval, and from generators of their own."""

import pytest
import torch

from nits.pnn.random import private_generator, quasi_uniform, uniform
from pnns import every_dtype
from registry import seeded


@every_dtype
def test_uniform_numbers_are_never_zero_or_one(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    like = torch.zeros((), dtype=dtype)
    u = uniform(torch.Size([1_000_000]), like, seeded(0))
    assert u.dtype == dtype
    assert 0 < u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    monkeypatch.setattr(torch, "rand", lambda shape, **_: like.expand(shape).clone())
    assert 0 < uniform(torch.Size([1]), like).item() < 1e-7


@every_dtype
def test_quasi_random_numbers_fill_each_of_n_equal_parts_once(dtype: torch.dtype) -> None:
    u = quasi_uniform(torch.Size((256, 5)), torch.zeros((), dtype=dtype), seeded(0))
    assert u.dtype == dtype
    for column in u.t():
        assert (column * 256).floor().unique().numel() == 256
    with pytest.raises(AssertionError):
        torch.testing.assert_close(u, quasi_uniform(u.shape, u, seeded(1)))


def test_generators_are_private() -> None:
    cpu = torch.device("cpu")
    generator = seeded(1)
    assert private_generator(generator, cpu) is generator
    assert private_generator(7, cpu).initial_seed() == 7
    fresh = [private_generator(None, cpu).initial_seed() for _ in range(2)]
    assert fresh[0] != fresh[1]
    assert private_generator(None, cpu) is not torch.default_generator
