"""The columns of a schema: how each turns a table's values into numbers for a model, and back.

`column` says what each must do, `build` makes one from what the evidence decided, and `first` has
those of files that were written before decisions were made by evidence.
"""

from __future__ import annotations

from typing import Any

from nits.tables.columns import first, ruler
from nits.tables.columns.categories import Categories
from nits.tables.columns.column import Coded, Column, facts_of
from nits.tables.columns.gridded import Gridded
from nits.tables.columns.listed import Codes, Ordered
from nits.tables.columns.real import Real
from nits.tables.evidence.grids import Grid

__all__ = ["Categories", "Coded", "Codes", "Column", "Gridded", "Ordered", "Real", "from_dict"]

RECORDS: dict[str, type[Any]] = {
    cls.record: cls for cls in (Categories, Codes, Ordered, Gridded, Real)
}


def from_dict(record: dict[str, Any]) -> Column:
    """Returns the column that `Column.to_dict` described."""
    if "column" not in record:
        return first.from_dict(record)
    values = {name: value for name, value in record.items() if name != "column"}
    made = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    made["facts"] = facts_of(values["facts"])
    if "ruler" in made:
        made["ruler"] = ruler.from_dict(values["ruler"])
    if "grid" in made:
        made["grid"] = Grid(**values["grid"])
    column: Column = RECORDS[record["column"]](**made)
    return column
