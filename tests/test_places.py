"""Folders for caches: what is done if one cannot be made."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

FIT = """
import os, torch, nits
nits.fit(nits.NITS.mlp(2, hidden=8, blocks=1), torch.randn(64, 2), max_steps=2, progress=False)
print(os.environ["TORCHINDUCTOR_CACHE_DIR"])
"""


def _folder_of_torch(place: Path) -> Path:
    """Returns the folder that torch takes after a fit whose temporary files are in `place`."""
    home = place / "home"
    left_out = ("TORCHINDUCTOR_CACHE_DIR",)
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"TMPDIR": str(place), "NITS_CACHE": str(home), "NITS_KERNELS": "plain"}
    done = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return Path(done.stdout.strip())


def test_torch_has_its_own_folder_for_caches(tmp_path: Path) -> None:
    assert _folder_of_torch(tmp_path).parent == tmp_path


def test_a_fit_needs_no_temporary_folder_of_torch(tmp_path: Path) -> None:
    (tmp_path / f"torchinductor_{getpass.getuser()}").write_text("in the way")
    assert _folder_of_torch(tmp_path) == tmp_path / "home" / "torch"
