"""What a table's joint model answers: any columns given, any asked, the rest left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from sklearn.utils.validation import check_is_fitted

from nits.tables.questions import asked
from nits.tables.questions.answer import Answer
from nits.tables.questions.results import Estimate

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


class Answers:
    """The methods of a joint model that answer questions."""

    def given(
        self, conditions: Mapping[str | int, Any] | str | None = None, /, **columns: Any
    ) -> Answer:
        """Returns the model under conditions on any columns, to draw from and to ask.

        A column may be given a value, a range (low, high) of known values with low ≤ x < high and
        None for no end, a set of values, or `nits.missing`:

            model.given(education="Masters", age=(30, 40), origin={"JFK", "LGA"})
            model.given("education == 'Masters' and 30 <= age < 40")

        conditions: By column, by name or position; or a text.
        """
        check_is_fitted(self)
        model = cast("NITSDensity", self)
        found = asked.gathered(model, conditions)
        for name, told in asked.gathered(model, columns).items():
            found.setdefault(name, []).extend(told)
        return Answer(model, found)

    def probability(self, event: Mapping[str | int, Any] | str) -> Estimate:
        """Returns the probability of an event, such as "delay > 30 and carrier == 'UA'"."""
        return self.given().probability(event)
