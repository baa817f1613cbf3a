"""Every block of Python on the page about questions runs, in order, in one namespace."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "questions.md"


def test_blocks_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(block, namespace)
    q, flights = namespace["q"], namespace["flights"]
    assert (q.sample(20, random_state=0)["carrier"] == "UA").all()
    assert namespace["middle"].notna().all().all()
    assert namespace["several"][0]["origin"].equals(flights["origin"])
