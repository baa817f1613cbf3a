"""What a column is: real, binned, integer, cells, categorical, or one of these with atoms.

A head knows one kind of column: how many weights its conditional distribution has, what the weight
model reads of a value, and log-probabilities, quantiles and initial weights. `head` says what each
must do. Curves for `CurvedEdges` are in `nits.pnn.curves`. Imports `nits.kernels` and `nits.pnn`;
the weight models and `nits.model` build on it.
"""

from collections.abc import Sequence

from nits.heads.atoms import Atoms
from nits.heads.categorical import Categorical
from nits.heads.cells import Cells
from nits.heads.continuous import Continuous
from nits.heads.cycles import Cycle
from nits.heads.head import Given, Head, PNNHead
from nits.heads.inflated import Inflated
from nits.heads.integer import Integer
from nits.heads.quantized import Quantized
from nits.pnn.cells import CurvedEdges, Edges, ListedEdges

__all__ = [
    "Atoms",
    "Categorical",
    "Cells",
    "Continuous",
    "CurvedEdges",
    "Cycle",
    "Edges",
    "Given",
    "Head",
    "Inflated",
    "Integer",
    "ListedEdges",
    "PNNHead",
    "Quantized",
    "real_columns",
]


def real_columns(heads: Sequence[Head] | int) -> tuple[Head, ...]:
    """Returns the heads given, or as many continuous ones as a number says.

    >>> import nits
    >>> len(nits.heads.real_columns(3))
    3
    """
    if isinstance(heads, int):
        heads = [Continuous() for _ in range(heads)]
    if not heads or not all(isinstance(head, Head) for head in heads):
        raise ValueError(
            f"heads must be a number of real columns or one head per column, but is {heads!r}; "
            "try 8, or a list of nits.heads.Continuous()."
        )
    return tuple(heads)
