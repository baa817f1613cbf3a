"""A slice of the campaign against files; `make attack` runs the rest."""

import pytest

from campaign import attack_commands, attack_disk, attack_kernels, attack_together, models


@pytest.mark.parametrize("block", range(4))
def test_model_files_and_checkpoints(block: int) -> None:
    found = {case: models.attack(case).wrong for case in range(40 * block, 40 * block + 40)}
    assert not {case: wrong for case, wrong in found.items() if wrong}


def test_good_files_are_accepted() -> None:
    for sort in models.SORTS:
        assert models._judged(models._good(sort), sort, must_refuse=False) == (False, None)
        models._use(models._read(models._good(sort), sort))


@pytest.mark.slow
@pytest.mark.parametrize("case", range(8))
def test_signals(case: int) -> None:
    attack_commands.signalled(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(8))
def test_full_disks(case: int) -> None:
    attack_commands.starved(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(10))
def test_built_kernels(case: int) -> None:
    attack_kernels.run(case)


@pytest.mark.slow
def test_threads_and_processes_at_once() -> None:
    attack_together.run(0)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(3, 317, 24))
def test_writes_that_fail(case: int) -> None:
    attack_disk.run(case)
