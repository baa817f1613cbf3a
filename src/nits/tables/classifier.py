"""`NITSClassifier`: classes given other columns, with their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from nits.tables import classes
from nits.tables.classes import Classes
from nits.tables.columns.column import Numbers
from nits.tables.frames import Frame
from nits.tables.supervised import Supervised


class NITSClassifier(ClassifierMixin, Supervised):  # type: ignore[misc]
    """The probabilities of classes y given X.

    Classes are strings, numbers or booleans. Of several targets at once `predict_proba` and
    `classes_` are lists, as those of scikit-learn's trees.

    kinds: "ordered" if the order of classes means something; categories by default.
    members: How many networks are trained; by default by the table's size.
    trees: Whether they read guesses of boosted trees, too; by default some do, and held-out rows
        weigh them (docs/prediction.md).
    max_minutes, max_steps: The budget; with max_steps there is one network.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.

    `density_` is the `NITSDensity` of y given X that is held.

    >>> import nits, numpy
    >>> x = numpy.linspace(0, 1, 200)[:, None]
    >>> model = nits.NITSClassifier(max_steps=20, random_state=0)
    >>> model.fit(x, numpy.where(x[:, 0] > 0.5, "high", "low")).predict_proba(x[:5]).shape
    (5, 2)
    """

    kind = "classifier"
    classes_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NITSClassifier:
        """Learns the probabilities of classes given X; y may have several columns."""
        x, table, weight = self._opened(X, y, sample_weight)
        found = [_classes(name, table) for name in table.columns]
        kinds = {**dict.fromkeys(table.columns, "categorical"), **self._kinds()}
        self._learn(x, table, kinds, weight)
        self.classes_ = found[0] if len(found) == 1 else found
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the most probable class of each row of X, shape (N,), or (N, K) of K targets."""
        shares = self._probas(X)
        pairs = zip(self._each_classes(), shares, strict=True)
        return self._stacked([levels[proba.argmax(1)] for levels, proba in pairs])

    def predict_proba(self, X: Any) -> Any:
        """Returns the probabilities of `classes_`, shape (N, C); a list of them of K targets."""
        found = self._probas(X)
        return found[0] if len(found) == 1 else found

    def predict_log_proba(self, X: Any) -> Any:
        """Returns the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            found = [np.log(proba) for proba in self._probas(X)]
        return found[0] if len(found) == 1 else found

    def _each_classes(self) -> list[Classes]:
        return [self.classes_] if len(self.targets_) == 1 else list(self.classes_)

    def _probas(self, X: Any) -> list[Numbers]:
        laws = self._laws(X)
        return [
            classes.probabilities(law, levels)
            for law, levels in zip(laws, self._each_classes(), strict=True)
        ]


def _classes(name: str, table: Frame) -> Classes:
    """Returns the classes of a target, ascending."""
    array = table.columns[name].array
    strings = array.dtype.kind == "O"
    check_classification_targets(array.astype(str) if strings else array)
    found: Classes = np.unique(array)
    if len(found) < 2:
        raise ValueError(
            f"{name!r} must have at least two classes to tell apart, but has only the class "
            f"{found[0]!r}."
        )
    return found
