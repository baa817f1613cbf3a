"""The table of attacks counts cases once, and failures until they pass."""

from pathlib import Path
from typing import Any

import campaign_table
import results

from campaign.attacks import ATTACKS


def run(first: int, cases: int, failed: list[int], date: str) -> dict[str, Any]:
    return {
        "attack": "tables",
        "first": first,
        "cases": cases,
        "failures": [f"python -m campaign tables --case {case}  # why" for case in failed],
        "date": date,
        "commit": "0123456789",
    }


def test_every_attack_has_words() -> None:
    assert list(campaign_table.ATTACKS) == list(ATTACKS)


def test_a_failure_that_passes_later_is_mended(tmp_path: Path) -> None:
    results.write(tmp_path / "campaign-tables.json", run(0, 100, [3, 7], "2026-01-01"))
    results.write(tmp_path / "campaign-tables-7.json", run(7, 1, [], "2026-01-02"))
    found = campaign_table.campaign_tables(tmp_path)
    assert "| 100 | 1; 1 mended | 0123456 |" in found
    results.write(tmp_path / "campaign-tables-3.json", run(3, 1, [3], "2026-01-03"))
    assert "| 100 | 1; 1 mended |" in campaign_table.campaign_tables(tmp_path)


def test_memory_is_shown(tmp_path: Path) -> None:
    figures = {"peak_mb": 431.4, "later_over_first_tenth": 1.004}
    record = {"results": {"rows": 5_000_000, "commands": {"score": figures}}}
    results.write(tmp_path / "campaign-memory.json", record)
    found = campaign_table.campaign_tables(tmp_path)
    assert "| 5,000,000 rows |" in found
    assert "| score | 431 | 1.00 |" in found


def test_columns_are_shown(tmp_path: Path) -> None:
    figures = {"peak_mb": 912.4}
    record = {"results": {"columns": 1000, "rows": 2000, "commands": {"fit": figures}}}
    results.write(tmp_path / "campaign-columns.json", record)
    found = campaign_table.campaign_tables(tmp_path)
    assert "| 1,000 columns, 2,000 rows | peak, MB |" in found
    assert "| fit | 912 |" in found
