"""What verbs show beside what they write."""

import io
import sys
from argparse import Namespace

import pytest

from nits.cli import outputs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "stdout", "quiet", "hidden"),
    [
        ("rows.csv", Terminal(), False, False),
        ("-", io.StringIO(), False, False),  # a pipe, beside which the bar is of use
        ("-", Terminal(), False, True),
        ("rows.csv", Terminal(), True, True),
    ],
)
def test_no_bar_is_drawn_among_rows(
    output: str, stdout: io.StringIO, quiet: bool, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if standard error were a terminal
    monkeypatch.setattr(sys, "stdout", stdout)
    found = outputs.counter(Namespace(output=output, quiet=quiet), 10)
    assert found.bar.disable == hidden
