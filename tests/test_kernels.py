"""The one door to the kernels: who is let through, and how a user closes it."""

import os
import subprocess
import sys

import pytest
import torch

import nits
from laws import some_rows
from nits import kernels
from registry import MODELS

pytestmark = pytest.mark.skipif(
    nits.kernels.native.library.loaded() is None, reason="there is no g++ or no GNU OpenMP"
)


def test_scoring_and_sampling_use_our_own_kernels() -> None:
    model = MODELS["mlp"]()
    with torch.no_grad(), kernels.using() as ran:
        model.log_prob(torch.zeros(5, 4))
        assert ran == {"native"}
    with kernels.using() as ran:
        model.sample(5, generator=0)
    assert ran == {"native"}


def test_where_gradients_are_recorded_kernels_are_for_training_only() -> None:
    """They know the first derivative in the weights and no other."""
    model = MODELS["mlp"]()
    x = torch.zeros(5, 4)
    with kernels.using() as ran:
        model.log_prob(x)
    assert ran == {"plain"}
    with kernels.using(training=True) as ran:
        model.log_prob(x)
    assert ran == {"native"}


def test_what_is_turned_off_stays_off_in_scoring_sampling_and_training() -> None:
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 40)
    with kernels.using(native=False, compiled=False) as ran:
        with torch.no_grad():
            model.log_prob(x)
        model.sample(5, generator=0)
        history = nits.fit(model, x, max_steps=2, progress=False)
    assert ran <= {"plain"}
    assert history.kernels == ["plain"]


def test_the_history_says_what_ran() -> None:
    model = MODELS["mlp"]()
    x, _ = some_rows(model, 40)
    assert nits.fit(model, x, max_steps=2, progress=False).kernels == ["native"]
    assert nits.fit(model, x, max_steps=2, progress=False, compile=False).kernels == ["plain"]


def test_what_is_not_named_stays_as_it_is_outside() -> None:
    with kernels.using(native=False), kernels.using(compiled=False):
        assert not kernels.current().native
        assert kernels.current().compiled is False
    assert kernels.current().native


@pytest.mark.parametrize(
    ("value", "native", "compiled"),
    [("plain", False, False), ("native", True, False), ("compiled, native", True, True)],
)
def test_the_environment_decides_for_a_process(
    monkeypatch: pytest.MonkeyPatch, value: str, native: bool, compiled: bool
) -> None:
    monkeypatch.setenv("NITS_KERNELS", value)
    policy = kernels.current()
    assert (policy.native, policy.compiled) == (native, compiled)


def test_an_unknown_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NITS_KERNELS", "cuda")
    with pytest.raises(ValueError, match="NITS_KERNELS must list native, compiled or plain"):
        kernels.current()


def test_with_kernels_off_no_compiler_is_started() -> None:
    """Scoring, too, leaves g++ alone: it is not even looked for."""
    code = (
        "import subprocess, torch, nits; subprocess.run = None\n"
        "model = nits.NITS.mlp(2, hidden=8, blocks=1)\n"
        "with torch.no_grad(): model.log_prob(torch.zeros(3, 2)); model.sample(3)\n"
    )
    quiet = {**os.environ, "NITS_KERNELS": "plain", "CXX": "/no/such/compiler"}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=quiet)


def test_the_number_of_rows_and_columns_changes_nothing() -> None:
    """One column at a time, as sampling has it, and many give the same numbers."""
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(3, nits.pnn_parameters((5,)), 40, generator=generator)
    x = torch.randn(3, 40, generator=generator)
    low, high = torch.full((3, 1), -torch.inf), torch.full((3, 1), torch.inf)
    with torch.no_grad():
        whole = kernels.log_prob(theta, (x,), low, high, (5,))
        single = [kernels.log_prob(theta[k], (x[k],), low[k], high[k], (5,)) for k in range(3)]
        u = kernels.cdf(theta, x, low, high, (5,))
        back = [kernels.quantile(theta[k], u[k], low[k], high[k], (5,)) for k in range(3)]
    torch.testing.assert_close(torch.stack(single), whole, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.stack(back), x, rtol=1e-4, atol=1e-4)
