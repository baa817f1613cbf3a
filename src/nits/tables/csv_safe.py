"""CSV that a spreadsheet cannot take for formulas: text that begins like one gets an apostrophe."""

from __future__ import annotations

from typing import Any

import pyarrow
from pyarrow import compute, types

FORMULA = r"^([=+\-@\t\r\n＝＋－＠])"
"""How a cell begins that spreadsheets compute, with the wide forms of the signs."""


def safe(table: Any) -> Any:
    """Returns a table whose text and names no spreadsheet takes for formulas."""
    columns = [_safe(table.column(i)) for i in range(table.num_columns)]
    names = _guarded(pyarrow.array(table.column_names, pyarrow.string())).to_pylist()
    return pyarrow.table(columns, names)


def _safe(column: Any) -> Any:
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = types.is_string(column.type) or types.is_large_string(column.type)
    return _guarded(column) if text else column


def _guarded(text: Any) -> Any:
    return compute.replace_substring_regex(text, FORMULA, r"'\1", max_replacements=1)
