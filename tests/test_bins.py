"""Equal bins, and the intervals of integers: ends, what is possible, and where points fall."""

import math

import pytest
import torch

from nits.pnn import bins
from nits.pnn.integers import Integers
from pnns import every_dtype

inf, nan = math.inf, math.nan
ODD = torch.tensor([-1.0, 0.0, 0.5, 2.0, 3.0, inf, -inf, nan])


@every_dtype
@pytest.mark.parametrize("count", [2, 3, 7, 256])
def test_bins_tile_the_support(count: int, dtype: torch.dtype) -> None:
    # low + (high − low) is not high, to rounding.
    low, high = torch.tensor(-1.97, dtype=dtype), torch.tensor(0.3, dtype=dtype)
    k = torch.arange(count, dtype=dtype)
    start, stop = bins.edges(k, low, high, count)
    assert start[0] == low
    assert stop[-1] == high
    assert torch.equal(start[1:], stop[:-1])
    torch.testing.assert_close(stop - start, torch.full_like(k, 2.27 / count), rtol=1e-4, atol=0)
    assert torch.equal(bins.containing((start + stop) / 2, low, high, count), k)
    assert torch.equal(bins.reach(k + 0.3, low, high, count), stop)


def test_what_is_no_bin() -> None:
    low, high = torch.tensor(-1.0), torch.tensor(2.0)
    assert bins.possible(ODD, 3).tolist() == [False, True, False, True] + [False] * 4
    start, stop = bins.edges(ODD, low, high, 3)
    assert start[:-1].tolist() == [-1, -1, -1, 1, -1, -1, -1]
    assert stop[:-1].tolist() == [0, 0, 0, 2, 0, 0, 0]
    assert start[-1].isnan()
    assert stop[-1].isnan()
    reach = bins.reach(ODD, low, high, 3)
    assert reach[:-1].tolist() == [-1, 0, 0, 2, 2, 2, -1]
    assert reach[-1].isnan()
    ends = torch.tensor([-1.0, 2.0])
    assert bins.containing(ends, low, high, 3).tolist() == [0, 2]


@every_dtype
def test_integers_tile_the_support(dtype: torch.dtype) -> None:
    few = Integers(-2, 5, shift=0.3, scale=7.0)
    low, high = (torch.tensor(end, dtype=dtype) for end in (few.low, few.high))
    k = torch.arange(-2, 6, dtype=dtype)
    start, stop = few.edges(k, low, high)
    assert few.count == len(k)
    assert start[0] == low
    assert stop[-1] == high
    torch.testing.assert_close(start[1:], stop[:-1], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close((start + stop) / 2, (k - 0.3) / 7)
    assert torch.equal(few.containing((start + stop) / 2), k)
    assert torch.equal(few.reach(k + 0.3, low, high), stop)


def test_what_is_none_of_the_integers() -> None:
    some, ends = Integers(0, 2), (torch.tensor(-0.5), torch.tensor(2.5))
    assert some.possible(ODD).tolist() == [False, True, False, True] + [False] * 4
    start, stop = some.edges(ODD, *ends)
    assert start[:-1].tolist() == [-0.5, -0.5, -0.5, 1.5, -0.5, -0.5, -0.5]
    assert stop[:-1].tolist() == [0.5, 0.5, 0.5, 2.5, 0.5, 0.5, 0.5]
    assert start[-1].isnan()
    reach = some.reach(ODD, *ends)
    assert reach[:-1].tolist() == [-0.5, 0.5, 0.5, 2.5, 2.5, 2.5, -0.5]
    assert some.containing(torch.tensor([-0.5, 2.5])).tolist() == [0, 2]


def test_integers_without_end() -> None:
    every = Integers()
    assert (every.low, every.high, every.count) == (-inf, inf, inf)
    assert every.possible(ODD).tolist() == [True, True, False, True, True] + [False] * 3
    low, high = torch.tensor(-inf), torch.tensor(inf)
    assert every.reach(torch.tensor([-inf, 3.0, inf]), low, high).tolist() == [-inf, 3.5, inf]
