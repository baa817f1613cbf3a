"""`NITSRegressor`: numbers given other columns, with their whole distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from nits.tables import targets
from nits.tables.supervised import Supervised


class NITSRegressor(RegressorMixin, Supervised):  # type: ignore[misc]
    """The distribution of numbers y given X: means, quantiles, intervals, densities, draws.

    kinds: Of y, where the decision by likelihood is to be overruled: "continuous", "integer" or
        "ordered", for all targets or by name or position; see `NITSDensity`.
    members: How many networks are trained; by default by the table's size.
    trees: Whether they read guesses of boosted trees, too; by default some do, and held-out rows
        weigh them (docs/prediction.md).
    max_minutes, max_steps: The budget; with max_steps there is one network.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.

    `density_` is the `NITSDensity` of y given X that is held.

    >>> import nits, numpy
    >>> x = numpy.linspace(0, 1, 200)[:, None]
    >>> model = nits.NITSRegressor(max_steps=20, random_state=0).fit(x, 3 * x[:, 0])
    >>> model.predict_interval(x[:5], coverage=0.9).shape
    (5, 2)
    """

    kind = "regressor"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NITSRegressor:
        """Learns the law of y given X; y may have several columns."""
        x, table, weight = self._opened(X, y, sample_weight)
        for name, values in table.columns.items():
            if values.array.dtype.kind not in "fiumM":
                raise ValueError(
                    f"Unknown label type: {name!r} must hold numbers to regress on, but holds "
                    f"{values.dtype}; NITSClassifier takes classes."
                )
        decided = {name: targets.kind(values, name) for name, values in table.columns.items()}
        kept = {name: kind for name, kind in decided.items() if kind is not None}
        self._learn(x, table, {**kept, **self._kinds()}, weight)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the mean of y given each row of X, shape (N,), or (N, K) of K targets.

        That of a target after the first is integrated over those before it, equation (37).
        """
        return self._stacked([np.asarray(law.mean()) for law in self._laws(X)])
