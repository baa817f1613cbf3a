"""CSV that a spreadsheet cannot take for formulas, nor a terminal for commands.

For spreadsheets text that begins like a formula gets an apostrophe. For terminals control
characters are escaped; files and pipes have them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
from pyarrow import compute, types

from nits.printable import printable

FORMULA = r"^([=+\-@\t\r\n＝＋－＠])"
"""How a cell begins that spreadsheets compute, with the wide forms of the signs."""


def safe(table: Any) -> Any:
    """Returns a table whose text and names no spreadsheet takes for formulas."""
    return _changed(table, _guarded)


def shown(table: Any) -> Any:
    """Returns a table whose text and names a terminal can show."""
    return _changed(table, _escaped)


def _changed(table: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a table with other text in it."""
    columns = [_text(table.column(i), change) for i in range(table.num_columns)]
    names = change(pyarrow.array(table.column_names, pyarrow.string())).to_pylist()
    return pyarrow.table(columns, names)


def _text(column: Any, change: Callable[[Any], Any]) -> Any:
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = types.is_string(column.type) or types.is_large_string(column.type)
    return change(column) if text else column


def _escaped(text: Any) -> Any:
    found = [None if one is None else printable(one) for one in text.to_pylist()]
    return pyarrow.array(found, text.type)


def _guarded(text: Any) -> Any:
    return compute.replace_substring_regex(text, FORMULA, r"'\1", max_replacements=1)
