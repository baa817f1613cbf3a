"""A slice of the campaign: `make attack` runs the rest."""

import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from campaign import attack_tables, attack_values, columns, steps, tables
from campaign.steps import Failure, nits, well

SLICE = range(24)


@pytest.fixture(autouse=True)
def quiet() -> None:
    warnings.simplefilter("ignore", UserWarning)


@pytest.mark.parametrize("case", SLICE)
def test_a_hostile_table(case: int) -> None:
    attack_tables.run(case, plots=case % 6 == 0)


@pytest.mark.parametrize("case", range(0, 180, 9))
def test_hostile_values(case: int) -> None:
    for one in range(case, case + 8):  # the ninth fits a model
        attack_values.run(one)


def test_cases_are_seeded_and_differ() -> None:
    first, again, other = (tables.made(case) for case in (3, 3, 4))
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)


@pytest.mark.parametrize("name", [*columns.COLUMNS, *columns.REFUSED])
def test_every_generator_makes_so_many_values(name: str) -> None:
    make = (columns.COLUMNS | columns.REFUSED)[name]
    for rows in (1, 3, 50):
        assert len(columns.arrow(make(np.random.default_rng(rows), rows))) == rows


def test_the_campaign_notices_failures(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="fit refuses"):
        well("fit", str(tmp_path / "none.csv"), "-o", str(tmp_path / "m.nits"))
    assert nits("fit", str(tmp_path / "none.csv"), "-o", str(tmp_path / "m.nits")).code == 2


def test_a_command_hangs_if_it_waits_or_works_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def works(args: list[str]) -> int:
        begun = time.process_time()
        while time.process_time() - begun < float(args[1]):
            pass
        return 0

    monkeypatch.setattr(steps, "main", works)
    monkeypatch.setattr(steps, "WAITED", 0.2)
    monkeypatch.setattr(steps, "WORKED", 1e-9)  # however busy the machine is
    monkeypatch.setattr(steps, "MOST_SECONDS", 0.6)
    assert nits("works", "0.4").code == 0
    with pytest.raises(Failure, match=r"works took more than 0\.6 s of the processor"):
        nits("works", "60")
    monkeypatch.setattr(steps, "main", lambda _: time.sleep(60))
    monkeypatch.setattr(steps, "WORKED", 0.1)
    with pytest.raises(Failure, match=r"waits did nothing for 0\.2 s"):
        nits("waits")
