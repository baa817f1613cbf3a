"""Rows of a table in pieces: which rows a batch has, and what is in memory."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import nits
from nits.training import lanes, streamed
from nits.training.lanes import Lanes
from nits.training.rows import Rows
from nits.training.streamed import Besides, Piece, Streamed

LIKE = torch.zeros(())


class Numbered:
    """Pieces whose rows hold their position in the table, and noise."""

    def __init__(self, sizes: Sequence[int], context: bool = False) -> None:
        self.sizes, self.context = sizes, context
        self.read_: list[int] = []

    def read(self, piece: int) -> Piece:
        self.read_.append(piece)
        start = sum(self.sizes[:piece])
        return self.rows(torch.arange(start, start + self.sizes[piece]))

    def rows(self, at: Tensor) -> Piece:
        noise = torch.sin(at * 12.9898) * 2
        return Piece(
            torch.stack([at.float(), noise], 1), -at[:, None].float() if self.context else None
        )

    def digest(self) -> str:
        return f"{self.sizes}"


def rows_of(sizes: list[int], context: bool = False, away: list[int] | None = None) -> Streamed:
    pieces = Numbered(sizes, context)
    every = torch.arange(sum(sizes))
    kept = Rows(pieces.rows(every).x, pieces.rows(every).context)
    whole = Streamed(pieces, kept, every, every)
    return whole if away is None else whole.view(Besides(torch.tensor(away)))  # type: ignore[return-value]


def taken(feed: Lanes, steps: range) -> Tensor:
    found = torch.cat([feed.batch(step, LIKE).x[:, 0] for step in steps]).long()
    feed.close()
    return found


SIZES = [130, 70, 500, 1, 299, 64, 40, 220, 90, 333]
TOTAL = sum(SIZES)


@pytest.fixture(autouse=True)
def small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "BUFFER", 2**14)  # 2,048 rows of two columns


def test_an_epoch_has_every_row_once_but_for_the_last_batch() -> None:
    rows = rows_of(SIZES)
    per_epoch = TOTAL // 16
    for epoch in (0, 1):
        seen = taken(Lanes(rows, 16, 7), range(epoch * per_epoch, (epoch + 1) * per_epoch))
        assert len(seen) == len(seen.unique()) == per_epoch * 16


def test_rows_that_are_left_out_never_come() -> None:
    away = [0, 3, 130, 700, 701, TOTAL - 1]
    rows = rows_of(SIZES, away=away)
    assert len(rows) == TOTAL - len(away)
    seen = taken(Lanes(rows, 16, 7), range(len(rows) // 16))
    assert not set(away) & set(seen.tolist())
    assert len(seen.unique()) == len(rows) // 16 * 16


def test_a_batch_mixes_pieces_from_all_over_the_table() -> None:
    rows = rows_of([100] * 40)
    feed = Lanes(rows, 64, 0)
    assert feed.count == 8
    batch = feed.batch(3, LIKE).x[:, 0].long() // 100
    feed.close()
    assert len(batch.unique()) >= 8


def test_the_seed_and_the_step_decide_a_batch_whatever_was_read_before() -> None:
    rows = rows_of(SIZES)
    whole = [Lanes(rows, 16, 7).batch(step, LIKE).x for step in (0, 5, 150, 250)]
    feed = Lanes(rows, 16, 7)
    again = [feed.batch(step, LIKE).x for step in range(251)]
    for step, x in zip((0, 5, 150, 250), whole, strict=True):
        assert torch.equal(again[step], x)
    assert not torch.equal(Lanes(rows, 16, 8).batch(5, LIKE).x, whole[1])


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_parts_of_ranks_make_up_the_batch(ranks: int) -> None:
    rows = rows_of(SIZES, context=True)
    size = 16 // ranks
    whole = Lanes(rows, 16, 7)
    parts = [Lanes(rows, 16, 7, slice(r * size, (r + 1) * size)) for r in range(ranks)]
    for step in (0, 1, 60, 120):
        batch = whole.batch(step, LIKE)
        each = [part.batch(step, LIKE) for part in parts]
        assert torch.equal(torch.cat([one.x for one in each]), batch.x)
        contexts = [one.context for one in each if one.context is not None]
        assert batch.context is not None
        assert torch.equal(torch.cat(contexts), batch.context)
        assert torch.equal(batch.context[:, 0], -batch.x[:, 0])


def test_a_rank_reads_the_lanes_of_its_part_only() -> None:
    rows = rows_of([100] * 40)
    feed = Lanes(rows, 64, 0, slice(0, 16))
    seen = taken(feed, range(4000 // 64))
    pieces = rows.pieces
    assert isinstance(pieces, Numbered)
    assert len(seen) == 4000 // 64 * 16
    assert len(set(pieces.read_)) < 25  # a quarter of 40, some of the next epoch


def test_windows_in_memory_stay_within_the_buffer() -> None:
    rows = rows_of([64] * 200)
    feed = Lanes(rows, 64, 0)
    for step in range(200):
        feed.batch(step, LIKE)
        done = [w.result() for w in feed.windows.values() if isinstance(w, Future)]
        assert sum(4 * window.x.numel() for window in done) <= lanes.BUFFER
    feed.close()


def test_a_piece_that_has_changed_is_refused() -> None:
    rows = rows_of(SIZES)
    assert isinstance(rows.pieces, Numbered)
    rows.pieces.read = lambda piece: Piece(torch.zeros(3, 2), None)  # type: ignore[method-assign]
    feed = Lanes(rows, 16, 7)
    with pytest.raises(ValueError, match=r"must have .* rows, as it had before, but has 3"):
        feed.batch(0, LIKE)
    feed.close()


@pytest.mark.parametrize(
    ("size", "largest", "pieces", "width", "count"),
    [
        (64, 10, 40, 8, 8),
        (64, 10, 3, 8, 2),
        (20, 10, 40, 8, 4),
        (15, 10, 40, 8, 1),
        (64, 500, 40, 8, 2),
        (64, 10**6, 40, 8, 1),
    ],
)
def test_lanes_are_few_enough_for_batch_pieces_and_buffer(
    size: int, largest: int, pieces: int, width: int, count: int
) -> None:
    assert lanes.lanes(size, largest, pieces, width) == count


def test_only_kept_rows_can_be_looked_at() -> None:
    pieces = Numbered([10])
    at = torch.tensor([1, 4, 9])
    rows = Streamed(pieces, Rows(pieces.rows(at).x), at, at)
    assert rows.take(torch.tensor([9, 1]), LIKE).x[:, 0].tolist() == [9, 1]
    with pytest.raises(ValueError, match="only rows that were kept can be looked at"):
        rows.take(torch.tensor([2]), LIKE)
    with pytest.raises(ValueError, match="must be trained on"):
        rows.batches(2, LIKE)


def test_folds_share_no_row_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "MOST_HELD_OUT", 50)
    one, other = streamed.held_out(10_000, 2, 0.1, 3)
    assert len(one) == len(other) == 50
    assert not set(one.tolist()) & set(other.tolist())
    assert bool((one.diff() > 0).all())
    assert [len(cut) for cut in streamed.held_out(3, 1, 0.1, 0)] == [0]


def test_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    rows = rows_of([300] * 8)
    rows.kept.x = rows.x = torch.tanh(torch.as_tensor(rows.kept.x))
    pieces = rows.pieces
    assert isinstance(pieces, Numbered)
    read = pieces.read
    pieces.read = lambda piece: Piece(torch.tanh(read(piece).x), None)  # type: ignore[method-assign]
    held = rows.view(torch.arange(0, 2400, 10))
    train = rows.view(Besides(torch.arange(0, 2400, 10)))

    def trained(steps: int, **options: Any) -> nits.NITS:
        model = nits.NITS.mlp(2, hidden=8, blocks=1, dropout=0.1, generator=0)
        nits.fit(
            model,
            train,
            validation=held,
            max_steps=steps,
            max_epochs=10,
            progress=False,
            recipe=nits.Recipe(batch_size=64, schedule=nits.Constant()),
            **options,
        )
        return model

    place = tmp_path / "c.safetensors"
    straight = trained(90, checkpoint=tmp_path / "other.safetensors")
    trained(41, checkpoint=place)
    resumed = trained(90, resume=place)
    for one, other in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_digest_tells_other_rows(tmp_path: Path) -> None:
    rows = rows_of(SIZES)
    assert rows.digest() == rows_of(SIZES).digest()
    assert rows.digest() != rows_of(SIZES[::-1]).digest()
    assert rows.digest() != rows_of(SIZES, away=[3]).digest()
    assert np.isfinite(float(rows.x.sum()))
