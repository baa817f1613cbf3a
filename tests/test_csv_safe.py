"""Formulas in CSV: text that a spreadsheet would compute gets an apostrophe, if asked."""

import io
from pathlib import Path

import pandas
import pyarrow
import pytest
from pyarrow import csv

from nits.cli.main import main
from nits.tables import csv_safe, files

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_like_a_formula_gets_an_apostrophe(text: str) -> None:
    table = pyarrow.table({text: [text, None, "a=b"], "n": [-1.5, 2, 3]})
    table = table.append_column("c", pyarrow.array([text, "x", text]).dictionary_encode())
    safe = csv_safe.safe(table).to_pydict()
    guarded = f"'{text}"
    expected = {guarded: [guarded, None, "a=b"], "n": [-1.5, 2, 3], "c": [guarded, "x", guarded]}
    assert safe == expected


def test_a_terminal_is_shown_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pyarrow.table({"a\x1b[31m": ["\x1b]0;x\x07", None, "b"], "n": [1, 2, 3]})
    expected = {False: table.to_pydict(), True: {"a\\x1b[31m": ["\\x1b]0;x\\x07", None, "b"]}}
    expected[True]["n"] = [1, 2, 3]
    for terminal, rows in expected.items():
        monkeypatch.setattr("sys.stdout.isatty", lambda told=terminal: told)
        with files.written("-") as writer:
            writer.write(table)
        text = capsys.readouterr().out
        assert csv.read_csv(io.BytesIO(text.encode())).to_pydict() == {
            name: ["" if one is None else one for one in values] for name, values in rows.items()
        }


def test_samples_are_guarded_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pandas.DataFrame({"=x": ["=1+1", "@y"] * 20, "b": [1.5, -2.5] * 20})
    rows.to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m.nits")
    fitted = ["fit", str(tmp_path / "t.csv"), "-o", model, "--max-steps", "2", "--quiet"]
    assert main(fitted) == 0
    assert main(["sample", model, "-n", "9", "--quiet", "--safe-csv", "-o", "-"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('"\'=x","b"')
    assert '"=' not in text
    assert '"@' not in text
    for verb in ("outliers", "impute"):
        assert main([verb, model, str(tmp_path / "t.csv"), "--quiet", "--safe-csv"]) == 0
        text = capsys.readouterr().out
        assert "'=" in text
        assert '"=' not in text
    output = str(tmp_path / "s.parquet")
    assert main(["sample", model, "-n", "9", "--quiet", "--safe-csv", "-o", output]) == 2
    assert "--safe-csv is for CSV files" in capsys.readouterr().err
