"""Every block of Python in the README runs, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import nits

README = Path(__file__).parent.parent / "README.md"


def test_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(block, namespace)
    model, table = namespace["model"], namespace["table"]
    assert nits.load("rent.nits").score(table) == model.score(table)
    assert (model.sample(20, random_state=0, given={"city": "Oslo"})["city"] == "Oslo").all()
    low, _, high = namespace["rent"].predict_quantiles(table, [0.05, 0.5, 0.95]).T
    assert 0.8 < ((table["rent"] >= low) & (table["rent"] <= high)).mean() <= 1
    u, net, rows = namespace["u"], namespace["net"], namespace["rows"]
    assert float((net.from_uniform(u) - rows).abs().max()) < 1e-2


def test_short_enough_to_read() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
