"""Times with a zone as the clocks on the wall show them: a day is a day there, also in summer.

Frames have such times in UTC, in which local midnights are not an hour apart from one another. So a
schema sees them by the wall, and samples go back to UTC. The hour that a clock shows twice in
autumn is taken for the first of the two, and one that it skips in spring for the next.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables import frames
from nits.tables.frames import Frame, Values

PLACE = re.compile(r"[A-Z][A-Za-z]+(?:/[A-Za-z0-9_+\-]+)+")
"""The name of a zone with clocks that change, in the name of a type; UTC and offsets have none."""


def read(table: Any) -> Frame:
    """Returns the columns of a table, times as local clocks show them."""
    frame = frames.read(table)
    return Frame({name: local(values) for name, values in frame.columns.items()}, frame.form)


def write(frame: Frame) -> Any:
    """Returns the table whose times local clocks show so: undoes `read`."""
    columns = {name: universal(values) for name, values in frame.columns.items()}
    return frames.write(Frame(columns, frame.form))


def local(values: Values) -> Values:
    """Returns times in UTC as their zone's clocks show them."""
    zone = _zone(values)
    return values if zone is None else replace(values, array=_shown(values.array, zone))


def universal(values: Values) -> Values:
    """Returns times that their zone's clocks show in UTC."""
    zone = _zone(values)
    return values if zone is None else replace(values, array=_meant(values.array, zone))


def _zone(values: Values) -> str | None:
    found = PLACE.search(values.dtype) if values.array.dtype.kind == "M" else None
    return None if found is None else found.group()


def _shown(array: NDArray[Any], zone: str) -> NDArray[Any]:
    from pyarrow import compute, timestamp

    times = _arrow(array).cast(timestamp(np.datetime_data(array.dtype)[0], zone))
    return _numpy(compute.local_timestamp(times), array)


def _meant(array: NDArray[Any], zone: str) -> NDArray[Any]:
    from pyarrow import compute, timestamp

    times = compute.assume_timezone(_arrow(array), zone, ambiguous="earliest", nonexistent="latest")
    return _numpy(times.cast(timestamp(np.datetime_data(array.dtype)[0])), array)


def _arrow(array: NDArray[Any]) -> Any:
    """Returns times of NumPy, whatever stands where they are missing, as an Arrow array."""
    import pyarrow

    return pyarrow.array(np.where(np.isnat(array), np.zeros(1, array.dtype), array))


def _numpy(times: Any, like: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = times.to_numpy(zero_copy_only=False).astype(like.dtype)
    return found
