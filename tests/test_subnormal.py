"""Inside `flushed` subnormal numbers are zero in every thread; outside they are what they were."""

from __future__ import annotations

import threading

import pytest
import torch

from nits.training import subnormal

TINY = torch.full((2_000_000,), 1e-40)  # enough elements for every thread to have some


def products() -> tuple[int, int]:
    """Returns how many halved subnormal numbers are zero, elementwise and by a matrix product."""
    halves = TINY * 0.5
    product = TINY.view(1000, 2000) @ torch.full((2000, 1), 0.5)
    return int((halves == 0).sum()), int((product == 0).sum())


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor cannot")
def test_subnormal_numbers_are_zero_inside_only() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert products() == (0, 0)
        with subnormal.flushed():
            assert products()[0] == len(TINY)
        assert products() == (0, 0)
    finally:
        torch.set_num_threads(threads)


def test_an_error_passes_through_and_the_setting_ends() -> None:
    with pytest.raises(ZeroDivisionError), subnormal.flushed():
        _ = 1 / 0
    assert (TINY * 0.5).max() > 0


def test_without_the_library_the_own_thread_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subnormal, "_openmp", lambda: None)
    with subnormal.flushed():
        assert (TINY[:10] * 0.5 == 0).all()


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor cannot")
def test_threads_have_settings_of_their_own() -> None:
    inside, seen = threading.Barrier(2), list[bool]()

    def other() -> None:
        inside.wait()
        seen.append(bool((TINY[:10] * 0.5 == 0).any()))
        with subnormal.flushed():
            seen.append(bool((TINY[:10] * 0.5 == 0).all()))
        seen.append(bool((TINY[:10] * 0.5 == 0).any()))

    thread = threading.Thread(target=other)  # started outside, so it inherits nothing
    thread.start()
    with subnormal.flushed():
        inside.wait()
        thread.join()
        assert (TINY[:10] * 0.5 == 0).all()
    assert seen == [False, True, False]
    assert (TINY[:10] * 0.5 > 0).all()


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor cannot")
def test_what_was_on_before_stays_on() -> None:
    with subnormal.flushed():
        with subnormal.flushed():
            pass
        assert (TINY[:10] * 0.5 == 0).all()
    assert (TINY[:10] * 0.5 > 0).all()
