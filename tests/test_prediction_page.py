"""Every block of Python in docs/prediction.md runs, in order, in one namespace."""

import re
from pathlib import Path
from typing import Any

import pytest

import nits

PAGE = Path(__file__).parent.parent / "docs" / "prediction.md"


def test_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(block, namespace)
    x, y = namespace["X"], namespace["y"]
    assert isinstance(nits.load("rent.nits"), nits.NITSRegressor)
    inside = (namespace["low"] <= y) & (y <= namespace["high"])
    assert 0.75 < inside.mean() < 0.99
    assert namespace["classes"].score(x, namespace["dear"]) > 0.85
    scores, each = namespace["scores"], namespace["each"]
    assert namespace["table"].index[scores.argmax()] == 1
    assert each[scores.argmax()].argmax() == 2
