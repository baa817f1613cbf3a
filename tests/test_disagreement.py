"""How much networks of different folds disagree, against laws whose centres are known."""

import pytest
import torch

from nits import NITS, pnn_parameters
from nits.heads import Continuous
from nits.tables import disagreement
from nits.tables.disagreement import Fold
from nits.training.rows import Rows

MOVED = torch.tensor([True, True])
REAL = torch.tensor([False, False])


def logistic(centre: torch.Tensor) -> NITS:
    """Two independent logistic columns of deviation 1.8, with these centres."""
    model = NITS.independent([Continuous(hidden=(1,))] * 2)
    theta = torch.zeros(2, pnn_parameters((1,)))
    theta[:, 1] = centre
    model.weights.start_at(theta.flatten())
    return model.eval()


def folds(count: int, members: int, own: float, apart: float) -> list[Fold]:
    """Folds of networks that err by `own` each, and by `apart` together."""
    source = torch.Generator().manual_seed(0)
    found = []
    for k in range(count):
        shared = apart * torch.randn(2, generator=source)
        centres = [shared + own * torch.randn(2, generator=source) for _ in range(members)]
        held_out = torch.arange(k, 1000, count)
        found.append(Fold([logistic(c) for c in centres], [1.0] * members, held_out))
    return found


def rows() -> Rows:
    return Rows(torch.randn(1000, 2, generator=torch.Generator().manual_seed(1)), None, None)


@pytest.mark.parametrize("apart", [0.0, 0.2, 0.4])
def test_the_ratio_is_that_of_the_variances(apart: float) -> None:
    found = disagreement.ratio(rows(), folds(60, 4, 0.2, apart), MOVED, REAL)
    assert found == pytest.approx((apart / 0.2) ** 2, rel=0.3, abs=0.15)


def test_points_of_a_grid_are_on_it() -> None:
    some = folds(2, 2, 0.2, 0.2)
    x, context = disagreement._between(rows(), some, MOVED, torch.tensor([True, False]))
    assert context is None
    assert torch.equal(x[:, 0], x[:, 0].round())
    assert not torch.equal(x[:, 1], x[:, 1].round())


def test_one_fold_or_one_network_of_each_tells_nothing() -> None:
    assert disagreement.ratio(rows(), folds(1, 4, 0.2, 0.2), MOVED, REAL) == 0.0
    assert disagreement.ratio(rows(), folds(4, 1, 0.2, 0.2), MOVED, REAL) == 0.0
    assert disagreement.ratio(rows(), [], MOVED, REAL) == 0.0


def test_columns_of_which_none_moves_tell_nothing() -> None:
    assert (
        disagreement.ratio(rows(), folds(4, 4, 0.2, 0.2), torch.tensor([False, False]), REAL) == 0.0
    )


def test_networks_that_are_alike_within_folds_have_the_greatest_ratio() -> None:
    found = disagreement.ratio(rows(), folds(10, 3, 1e-4, 0.5), MOVED, REAL)
    assert found == disagreement.MOST


def test_columns_that_do_not_move_do_not_count() -> None:
    """The second column of one fold lies far off, but is none of those that have curves."""
    some = folds(30, 4, 0.2, 0.2)
    far = [logistic(torch.tensor([0.0, 40.0])) for _ in range(4)]
    every = [*some, some[0]._replace(members=far)]
    plain = disagreement.ratio(rows(), [*some, some[0]], torch.tensor([True, False]), REAL)
    found = disagreement.ratio(rows(), every, torch.tensor([True, False]), REAL)
    assert found < 3 * plain + 1
    assert disagreement.ratio(rows(), every, MOVED, REAL) > 2 * found
