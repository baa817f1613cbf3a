"""What a table's model says of its one modelled column given the others: quantiles, mean, cdf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nits.tables import zones
from nits.tables.conditional import Conditional
from nits.tables.validate import checked_levels

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


class Predictions:
    """The methods of a model of one column given others, its context."""

    def predict_quantiles(
        self, X: Any, levels: Sequence[float] | NDArray[Any] | float = (0.05, 0.5, 0.95)
    ) -> NDArray[Any]:
        """Returns quantiles of the modelled column given each row of X, shape (N, len(levels)).

        They are those of known values: holes have no place among them.
        """
        return self._conditional(X).quantiles(checked_levels(levels))

    def predict_mean(self, X: Any) -> NDArray[Any]:
        """Returns the mean of the modelled column given each row of X, shape (N,); a time of times.

        It is a quadrature of the distribution function; a category has no mean.
        """
        return self._conditional(X).mean()

    def cdf(self, X: Any) -> NDArray[np.float64]:
        """Returns, for each row of X, the probability of a known value at most as large.

        It is NaN for missing values.
        """
        conditional = self._conditional(X)
        return conditional.cdf(zones.read(X).columns[conditional.column.name])

    def _conditional(self, X: Any) -> Conditional:
        """Returns the distribution of the one modelled column given each row."""
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        if len(model.schema_.columns) != 1:
            raise ValueError(
                f"one column must be modelled for this, but {len(model.schema_.columns)} are; "
                "name the others in context=."
            )
        given = model._given(zones.read(X))
        with torch.no_grad():
            found = model.model_.conditionals(torch.zeros(len(given), 1), model._context(given))[0]
        return Conditional(model.schema_.columns[0], found)
