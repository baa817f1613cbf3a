"""Tables too wide for the memory there is are refused at once, by a formula of bytes."""

import time
from pathlib import Path

import numpy as np
import pytest

from nits import NITS, NITSDensity
from nits.heads import Continuous
from nits.tables import defaults, room
from nits.tables.frames import Frame, read


def frame(columns: int, constant: int = 0) -> Frame:
    x = np.random.default_rng(0).standard_normal((4, columns))
    x[:, :constant] = 1.5
    return read(x)


@pytest.mark.parametrize("columns", [10, 70, 400])
@pytest.mark.parametrize("rows", [500, 30_000])
def test_the_formula_counts_the_weights_of_the_network(columns: int, rows: int) -> None:
    """And four numbers for each pair of columns, which the lines of a guess are fitted with."""
    plan = defaults.plan(rows, columns)._replace(batch_size=0)
    model = NITS.mlp(
        [Continuous(hidden=plan.styles[0].pnn, knots=plan.knots)] * columns,
        hidden=plan.hidden,
        blocks=plan.blocks,
        codes=plan.codes,
    )
    counted = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    assert room.needed(columns, plan) == 4 * 6 * counted + 4 * 4 * columns**2


def test_the_largest_pnn_of_all_styles_counts() -> None:
    plan = defaults.plan(500, 20)
    small, large = plan.styles[0]._replace(pnn=(8,)), plan.styles[0]._replace(pnn=(16, 16))
    alone = room.needed(20, plan._replace(styles=(large,)))
    assert room.needed(20, plan._replace(styles=(small,))) < alone
    for styles in ((small, large), (large, small)):
        assert room.needed(20, plan._replace(styles=styles)) == alone


@pytest.mark.parametrize("columns", [63, 399, 400, 1000])
def test_a_thousand_columns_need_less_than_a_gigabyte(columns: int) -> None:
    """The libraries that are imported take 0.4 GB of it."""
    assert room.needed(columns, defaults.plan(2000, columns)) < 0.55 * 2**30


def test_a_table_too_wide_is_refused_before_anything_is_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "available", lambda: 16 * 2**30)
    x = np.random.default_rng(0).standard_normal((20, 10_000))
    begun = time.monotonic()
    message = (
        r"a network of 10000 columns must fit into memory, but needs about \d+ GB, and there are "
        r"16; leave columns out, or model some at a time and name the others .* in context=\."
    )
    with pytest.raises(ValueError, match=message):
        NITSDensity().fit(x)
    assert time.monotonic() - begun < 5


def test_constant_columns_and_given_ones_need_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = defaults.plan(4, 300)._replace(codes=4)
    monkeypatch.setattr(room, "available", lambda: room.needed(100, plan))
    with pytest.raises(ValueError, match="a network of 300 columns"):
        room.refuse_too_wide(frame(300), [], plan)
    room.refuse_too_wide(frame(300, constant=200), [], plan)
    room.refuse_too_wide(frame(300), [f"x{i}" for i in range(200)], plan)


def test_a_container_may_have_less_memory_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "GROUP_LIMIT", tmp_path / "memory.max")
    whole = room.available()
    (tmp_path / "memory.max").write_text("max\n")
    assert room.available() == whole
    (tmp_path / "memory.max").write_text("12345\n")
    assert room.available() == (None if whole is None else 12345)
