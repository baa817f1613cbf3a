"""Every block of Python in the README runs, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

README = Path(__file__).parent.parent / "README.md"


def test_blocks_run() -> None:
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(block, namespace)
    probs = namespace["k"].probs.sum(-1)
    assert torch.allclose(probs, torch.ones_like(probs), atol=1e-5)
    u, model, rows = namespace["u"], namespace["model"], namespace["rows"]
    assert float((model.from_uniform(u) - rows).abs().max()) < 1e-2
    mixed = namespace["mixed"].sample(50, context=torch.zeros(2), generator=0)
    assert bool((mixed[:, 0] >= 0).all())
    assert set(mixed[:, 1].tolist()) <= set(range(10))


def test_short_enough_to_read() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
