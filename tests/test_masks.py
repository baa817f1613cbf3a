"""Ranks and blocks: what may be read is multiplied, and what is skipped may not be read."""

import pytest
import torch

from nits.weights import masks

shapes = pytest.mark.parametrize(
    ("units", "columns"), [(6, 2), (7, 3), (21, 5), (512, 63), (64, 64), (5, 1)]
)


@shapes
@pytest.mark.parametrize("context", [False, True])
def test_hidden_ranks_are_sorted_and_even(units: int, columns: int, context: bool) -> None:
    ranks = masks.hidden_ranks(units, columns, context=context)
    assert len(ranks) == units
    assert (ranks.diff() >= 0).all()
    counts = torch.bincount(ranks, minlength=columns)
    least = 0 if context or columns == 1 else 1
    assert (counts[:least] == 0).all()
    assert counts[least:].max() - counts[least:].min() <= 1


def test_ranks_of_inputs_and_outputs_repeat_by_width() -> None:
    assert masks.input_ranks((1, 2, 1)).tolist() == [1, 2, 2, 3]
    assert masks.output_ranks((2, 1, 3)).tolist() == [0, 0, 1, 2, 2, 2]


def test_mask_is_rank_against_rank() -> None:
    mask = masks.mask(torch.tensor([0, 1, 3]), torch.tensor([1, 1, 2, 3]))
    assert mask.int().tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]


@shapes
@pytest.mark.parametrize("context", [False, True])
def test_the_network_of_masks_lets_each_column_see_all_before_and_none_after(
    units: int, columns: int, context: bool
) -> None:
    widths = tuple(1 + i % 2 for i in range(columns))
    hidden = masks.hidden_ranks(units, columns, context=context)
    first = masks.mask(hidden, masks.input_ranks(widths)).double()
    inner = masks.mask(hidden, hidden).double()
    last = masks.mask(masks.output_ranks(widths), hidden).double()
    paths = last @ inner @ first > 0
    expected = masks.mask(masks.output_ranks(widths), masks.input_ranks(widths))
    assert torch.equal(paths, expected)


@pytest.mark.parametrize("count", [1, 2, 4, 9])
@pytest.mark.parametrize("kind", ["first", "inner", "last", "one-rank"])
def test_blocks_tile_the_rows_and_skip_only_what_is_masked(count: int, kind: str) -> None:
    hidden, widths = masks.hidden_ranks(21, 5, context=False), (3, 1, 2, 4, 1)
    rows, columns = {
        "first": (hidden, masks.input_ranks(widths)),
        "inner": (hidden, hidden),
        "last": (masks.output_ranks(widths), hidden),
        "one-rank": (torch.zeros(4, dtype=torch.long), torch.arange(3)),
    }[kind]
    mask, blocks = masks.mask(rows, columns), masks.blocks(rows, columns, count)
    assert len(blocks) <= count
    assert [b.start for b in blocks] + [len(rows)] == [0] + [b.stop for b in blocks]
    assert [b.before for b in blocks] == [0] + [b.seen for b in blocks[:-1]]
    for b in blocks:
        assert b.start < b.stop
        assert mask[b.start : b.stop, : b.before].all()
        assert not mask[b.start : b.stop, b.seen :].any()
        assert b.seen == 0 or mask[b.start : b.stop, b.seen - 1].any()


def test_four_blocks_skip_more_than_a_third() -> None:
    ranks = masks.hidden_ranks(512, 63, context=False)
    multiplied = sum((b.stop - b.start) * b.seen for b in masks.blocks(ranks, ranks, 4))
    assert multiplied < 0.64 * 512**2
