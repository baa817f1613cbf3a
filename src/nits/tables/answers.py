"""What a table's joint model answers: any columns given, any asked, the rest left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nits.tables import targets, zones
from nits.tables.questions import asked, explanation, imputation
from nits.tables.questions.answer import Answer
from nits.tables.questions.conditions import Range, Told
from nits.tables.questions.dependence import Dependence
from nits.tables.questions.explanation import Explanation
from nits.tables.questions.many import RowAnswers
from nits.tables.questions.results import Estimate

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


class Table(Protocol):
    """A DataFrame, or an Arrow table."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


class Answers:
    """The methods of a joint model that answer questions."""

    @overload
    def given(self, conditions: Told | str | None = None, /, **columns: Any) -> Answer: ...

    @overload
    def given(self, conditions: Table, /, **columns: Any) -> RowAnswers: ...

    def given(
        self, conditions: Told | str | Table | None = None, /, **columns: Any
    ) -> Answer | RowAnswers:
        """Returns the model under conditions on any columns, to draw from and to ask.

        A column may be given a value, a range (low, high) of known values with low ≤ x < high and
        None for no end, a set of values, or `nits.missing`:

            model.given(education="Masters", age=(30, 40), origin={"JFK", "LGA"})
            model.given("education == 'Masters' and 30 <= age < 40")

        conditions: By column, which is a name or a position; or a text; or a table with some of
            the columns, each row of which is a question of its own, as in `given_rows`.
        """
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        if not isinstance(conditions, Mapping) and targets.is_table(conditions):
            return self.given_rows(conditions, columns)
        found = asked.gathered(model, cast("Told | str | None", conditions))
        for name, told in asked.gathered(model, columns).items():
            found.setdefault(name, []).extend(told)
        return Answer(model, found)

    def given_rows(self, X: Any, conditions: Told | str | None = None) -> RowAnswers:
        """Returns the model given each row of a table that has some of the columns.

        conditions: What is given besides, the same for all rows; see `given`.
        """
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        return RowAnswers(model, zones.read(X), asked.gathered(model, conditions))

    def _under(self, given: Told | str, complete: bool) -> Answer:
        """Returns the model under conditions, and without holes if rows shall be complete."""
        model = cast("NITSDensity", self)
        found = asked.gathered(model, given)
        if complete:
            for column in model.schema_.columns:
                if column.optional and column.name not in found:
                    found[column.name] = [Range()]
        return Answer(model, found)

    def impute(
        self,
        X: Any,
        draws: int | str = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Fills in the missing values of a table; what is there is not touched.

        draws: How many tables to return, in a list, each with holes drawn given all observed
            entries of their row, and given that they are not missing: multiple imputations. Or
            "mean", "median" or "mode" for one table with the middle of each hole's distribution;
            categories always have their mode.
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        found = imputation.imputed(cast("NITSDensity", self), X, draws, seed)
        return found[0] if isinstance(draws, str) else found

    def explain(self, X: Any, random_state: int = 0) -> Explanation:
        """Returns how surprising each entry of a table is given all the others of its row.

        The surprise is −log of the probability of a value at least as far out, or at most as
        probable for categories; it has no unit. `likely` has what would be likely instead.
        """
        check_is_fitted(self)
        return explanation.explained(cast("NITSDensity", self), X, random_state)

    def dependence(self, draws: int | None = None, *, given_rest: bool = False) -> Dependence:
        """Returns the mutual information of every pair of columns in nats, with a plot.

        draws: How many rows are drawn; 20,000 by default, and 256 given the rest.
        given_rest: Whether all other columns are given, which leaves what they do not tell.
        """
        return self.given().dependence(draws, given_rest=given_rest)

    def probability(self, event: Mapping[Any, Any] | str) -> Estimate:
        """Returns the probability of an event, such as "delay > 30 and carrier == 'UA'"."""
        return self.given().probability(event)
