"""What the table's extreme values would have been worth, had their rows not been in the table.

A column ends at its least and its greatest value, so no row of the table lies beyond, but a new row
may. When a row is held out that alone has the extreme value of a column, that value counts as it
would beyond the next one: by the column's tail, equation (28). Otherwise the figure of held-out
rows would be too good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.tables.columns import Column
from nits.tables.columns.real import Real
from nits.training.rows import Rows

BESIDE = 2
"""The outermost values of an end that are looked at: the extreme one, and that beside it."""


class Extremes(NamedTuple):
    """Entries of the table that alone have the extreme value of their column.

    rows, columns: Where they are.
    log_prob: Their log-probabilities beyond the values beside them, as the model has units.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    log_prob: NDArray[np.float64]

    def left_out(
        self, scores: NDArray[np.float64], density: Density, rows: Rows, held_out: torch.Tensor
    ) -> NDArray[np.float64]:
        """Returns the log-densities of held-out rows with these entries beyond the ends.

        scores: With the entries inside, shape (N,).
        """
        places = {row: k for k, row in enumerate(held_out.tolist())}
        here = [k for k, row in enumerate(self.rows.tolist()) if row in places]
        if not here:
            return scores
        index = torch.from_numpy(self.rows[here])
        batch = rows.take(index, density.like)
        with torch.no_grad():
            inside = density.log_prob_per_column(batch.x, batch.context).double().cpu().numpy()
        found = scores.copy()
        for j, k in enumerate(here):
            found[places[int(self.rows[k])]] += self.log_prob[k] - inside[j, self.columns[k]]
        return found


def extremes(
    columns: Sequence[Column], numbers: torch.Tensor, places: torch.Tensor | None = None
) -> Extremes:
    """Returns the extreme entries of real columns with tails; numbers have the shape (N, D).

    places: Where these rows are in the table, if they are not all of it.
    """
    found = []
    for i, column in enumerate(columns):
        if not isinstance(column, Real):
            continue
        low, high = column.ends()
        known = (numbers[:, i] >= low) & (numbers[:, i] <= high)
        where = known.nonzero().flatten()
        if len(where) < BESIDE:
            continue
        values = numbers[where, i].double()
        for law, largest in ((column.ruler.lower, False), (column.ruler.upper, True)):
            ends, at = values.topk(BESIDE, largest=largest)
            if law.share and ends[0] != ends[1]:
                distance = float((ends[0] - ends[1]).abs())
                longer = replace(law, room=law.room + distance)  # from the next value to the limit
                log_prob = float(longer.log_density(np.array(distance))) + np.log(column.known)
                found.append((int(where[at[0]]), i, log_prob - column.log_left))
    rows, which, log_prob = zip(*found, strict=True) if found else ((), (), ())
    index = np.array(rows, np.int64) if places is None else places.numpy()[np.array(rows, np.int64)]
    return Extremes(index, np.array(which, np.int64), np.array(log_prob, float))
