"""The benchmark of answers: trials that are taken up where they stopped, and their page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import answers
import answers_half
import answers_networks
import answers_table
import joint_start
import numpy as np
import pytest
import role_draws
import suite_published
import torch

import nits
from nits import datasets
from nits.datasets import Split

PAGE = Path(__file__).parent.parent / "docs" / "roles.md"
TINY = {"hidden": 16, "dropout": 0.0, "pnn": 4, "knots": 3, "rate": 1e-2, "batch": 64}


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Split:
    noise = np.random.default_rng(0).standard_normal((400, 3)).astype(np.float32)
    rows = (noise.cumsum(1) / np.sqrt([1, 2, 3])).astype(np.float32)
    found = Split("power", rows, rows[:90], rows[:60], ("a", "b", "c"))
    monkeypatch.setattr(datasets, "load", lambda name: found)
    monkeypatch.setitem(answers_networks.SETTINGS, "power", TINY)
    return found


def test_trials_are_taken_up_where_they_stopped(split: Split, tmp_path: Path) -> None:
    argv = ["trials", "power", "--steps", "3", "--only", answers.BASE]
    assert answers.main(argv, tmp_path) == 0
    path = tmp_path / "answers-trials-power.json"
    first = json.loads(path.read_text())
    more = ["a straight-line guess", answers.PLAIN, "given by coins"]
    assert answers.main([*argv, *more], tmp_path) == 0
    found = json.loads(path.read_text())
    assert list(found["results"]) == [answers.BASE, *more]
    assert found["results"][answers.BASE] == first["results"][answers.BASE]
    assert set(found["results"][answers.PLAIN]["validation"]) == {"joint"}
    half = found["results"][answers.BASE]["validation"]["half"]
    assert half["rows"] == len(split.validation)
    page = answers_table.answers_tables(tmp_path)
    assert f"| {answers.BASE} | " in page
    assert page.count("(") >= 4  # differences from the base
    assert f"{half['nats']:.3f}".replace("-", "−") in page


def test_half_of_power(split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(answers_half.ORDERS, "power", [[2, 0, 1], [0, 1, 2]])
    argv = ["power-half", "--minutes", "0.01", "--hidden", "12"]
    argv += ["--weights", str(tmp_path / "kept"), "--seeds"]
    found = []
    for seeds in (["0"], ["1"], ["0", "1"]):  # the last reads what was kept
        assert answers.main([*argv, *seeds], tmp_path) == 0
        record = json.loads((tmp_path / "answers-power-half.json").read_text())
        assert record["test"]["half"]["rows"] == len(split.test)
        found.append(record["test"]["half"]["nats"])
    assert found[2] >= (found[0] + found[1]) / 2  # Jensen's inequality
    assert "POWER, 2 networks, mixed, 0.01 minutes" in answers_table.answers_tables(tmp_path)
    names = sorted(path.name for path in (tmp_path / "kept").glob("*.safetensors"))
    assert names == [f"answers-power-0.01m-seed{k}.safetensors" for k in (0, 1)]
    assert [one["started_from"] for one in record["networks"]] == [None, None]


def test_half_of_weighted_rows_on_the_whole_line(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test row lies outside, and weights of the rows count."""
    far = np.array([[40.0, -40.0, 90.0]], np.float32)
    weight = np.where(split.train[:, 0] > 0, 9.0, 1.0)
    parts = suite_published.Parts(split.train, weight, split.validation, far)
    monkeypatch.setattr(suite_published, "loaded", lambda name: parts)
    tiny = {**TINY, "real": True, "guess": True, "activation": "silu", "optimizer": nits.AdamW()}
    monkeypatch.setitem(answers_networks.SETTINGS, "miniboone", tiny)
    monkeypatch.setattr(answers_half, "figures", lambda models, rows, slopes: _told(models[0]))
    argv = ["miniboone-half", "--minutes", "0.02", "--seeds", "0", "--weights", str(tmp_path)]
    assert answers.main(argv, tmp_path) == 0
    record = json.loads((tmp_path / "answers-miniboone-half.json").read_text())
    assert record["weighted"]
    assert record["training_rows"] == len(split.train)
    assert np.isfinite(record["test"]["far"])
    assert record["test"]["positive"] > 0.6  # unweighted rows have a half


def _told(model: Any) -> dict[str, float]:
    """Returns the log-density of a far row, and how often the first column is positive."""
    none = torch.zeros(3, dtype=torch.bool)
    first = torch.tensor([True, False, False])
    drawn = model.roles.sample(torch.zeros(500, 3), none, 0, asked=first)[:, 0]
    with torch.no_grad():
        far = model.log_prob(torch.tensor([[40.0, -40.0, 90.0]]))
    return {"far": float(far), "positive": float((drawn > 0).float().mean())}


def test_roles_start_as_a_joint_network(split: Split, tmp_path: Path) -> None:
    """Given columns that come first, the untrained roles have the joint network's answers."""
    joint = nits.NITS.mlp(3, hidden=10, blocks=2, order=[2, 0, 1], generator=0)
    with torch.no_grad():
        for p in joint.parameters():
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1)), alpha=0.2)
    joint.load_state_dict(joint.state_dict())  # masked weights are zero again
    roles = joint_start.from_joint(joint, 21, 0)
    x = torch.from_numpy(split.test.copy())
    none, first = torch.zeros(3, dtype=torch.bool), torch.tensor([False, False, True])
    wanted = joint.log_prob_per_column(x)
    with torch.no_grad():
        whole = roles.log_prob_per_column(x, none, ~none)
        rest = roles.log_prob_per_column(x, first, ~first)
    torch.testing.assert_close(whole, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(rest[:, :2], wanted[:, :2], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="at least 5 units of rank 1, but has 4; widen it"):
        joint_start.from_joint(joint, 12, 0)

    joint.save(tmp_path / "joint.safetensors")
    argv = ["power-half", "--minutes", "0.01", "--hidden", "21", "--seeds", "0"]
    argv += ["--joint", str(tmp_path / "joint.safetensors"), "--weights", str(tmp_path)]
    assert answers.main(argv, tmp_path) == 0
    record = json.loads((tmp_path / "answers-power-half.json").read_text())
    assert record["networks"][0]["started_from"] == "joint.safetensors"


def test_coins_give_half_of_the_entries() -> None:
    given = role_draws.coins(4000, 5)
    assert float(given.float().mean()) == pytest.approx(0.5, abs=0.02)
    assert torch.equal(given, role_draws.coins(4000, 5))
    assert (role_draws.pairs(50, 5).sum(1) == 2).all()
    drawn, hidden = role_draws.Coins(joint=0.2).draw(4000, 5, torch.Generator().manual_seed(0))
    assert float(drawn.float().mean()) == pytest.approx(0.4, abs=0.02)
    assert not (drawn & hidden).any()


def test_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert isinstance(names["roles"], nits.Roles)
    assert float(names["said"].mean()) > float(names["alone"].mean()) + 0.1
    assert torch.equal(names["rows"][:, 2], names["x"][:5, 2])
