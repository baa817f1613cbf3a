"""Control characters never reach a terminal."""

from pathlib import Path

import pandas
import pytest

from nits.cli.main import main
from nits.printable import listed, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 日本", "größe 日本"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        (3.5, "3.5"),
    ],
)
def test_characters_that_do_not_print_are_escaped(text: object, shown: str) -> None:
    assert printable(text) == shown


def test_many_names_are_not_all_listed() -> None:
    assert listed(["a", "b\x1b"]) == r"a, b\x1b"
    many = listed(f"c{i}" for i in range(1000))
    assert many.endswith("c29, … and 970 more")


def test_names_and_levels_are_escaped_wherever_they_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In what fit and info print, in notes, and in errors that list columns."""
    names = ["a\x1b[2J", "b\u202e", "c\nd"]
    rows = pandas.DataFrame({names[0]: [1, 2] * 9, names[1]: ["\x07"] * 18, names[2]: range(18)})
    rows.to_parquet(tmp_path / "t.parquet")
    model = str(tmp_path / "m.nits")
    assert main(["fit", str(tmp_path / "t.parquet"), "-o", model, "--max-steps", "2"]) == 0
    assert main(["info", model]) == 0
    rows.drop(columns=names[0]).to_parquet(tmp_path / "less.parquet")
    assert main(["score", model, str(tmp_path / "less.parquet")]) == 2
    told = "".join(capsys.readouterr())
    assert r"a\x1b[2J" in told
    assert r"b\u202e" in told
    assert all(letter.isprintable() or letter == "\n" for letter in told)
