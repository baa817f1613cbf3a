"""What the table's extreme values would have been worth, had their rows not been in the table.

A column ends at its least and its greatest value, so no row of the table lies beyond, but a new row
may. When a row is held out that alone has the extreme value of a column, that value counts as it
would beyond the next one: by the column's tail, equation (28). Otherwise the figure of held-out
rows would be too good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.tables.columns import Column
from nits.tables.columns.beyond import End
from nits.tables.columns.real import Real
from nits.training.rows import Rows

BESIDE = 2
"""The outermost values of an end that are looked at: the extreme one, and that beside it."""


class Extremes(NamedTuple):
    """Entries of the table that alone have the extreme value of their column.

    rows, columns: Where they are.
    ends: Beyond which end they would lie.
    log_prob: Their log-densities given that they lie beyond the values beside them, as the model
        has units.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    ends: list[End]
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
            laws = density.conditionals(batch.x, batch.context)
            found = scores.copy()
            for j, k in enumerate(here):
                i, end = int(self.columns[k]), self.ends[k]
                numbers = torch.tensor(end.outer).to(batch.x).unsqueeze(1).expand(-1, len(here))
                low, high = laws[i].cdf(numbers)[:, j].double().tolist()
                beyond = math.log(end.slope * max(high - low, 0.0) + end.floor)
                found[places[int(self.rows[k])]] += beyond + self.log_prob[k] - inside[j, i]
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
        for law, end, largest in (
            (column.ruler.lower, column.beyond.lower, False),
            (column.ruler.upper, column.beyond.upper, True),
        ):
            ends, at = values.topk(BESIDE, largest=largest)
            if end and ends[0] != ends[1]:
                distance = float((ends[0] - ends[1]).abs())
                # From the next value to the limit. In its row's units the value is outermost.
                longer = replace(law.given(), room=law.room + distance)
                log_prob = float(longer.log_density(np.array(distance))) - math.log(end.left)
                found.append((int(where[at[0]]), i, end, log_prob))
    index = np.array([row for row, *_ in found], np.int64)
    return Extremes(
        index if places is None else places.numpy()[index],
        np.array([place for _, place, *_ in found], np.int64),
        [end for _, _, end, _ in found],
        np.array([law for *_, law in found], float),
    )
