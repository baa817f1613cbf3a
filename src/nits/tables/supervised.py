"""What `NITSRegressor` and `NITSClassifier` share: the law of y given X, fitted and asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from nits import checks
from nits.tables import frames, schema, targets, zones
from nits.tables.columns.column import Numbers
from nits.tables.conditional import Conditional
from nits.tables.estimator import NITSDensity
from nits.tables.frames import Frame
from nits.tables.questions.single import refuse_no_quantiles
from nits.tables.validate import (
    LEAST_ROWS,
    checked_frame,
    checked_levels,
    checked_weight,
    counted,
)

Levels = Sequence[float] | NDArray[Any] | float


class Supervised(BaseEstimator):  # type: ignore[misc]
    """The law of y given X, held as a `NITSDensity` whose context are the columns of X.

    X is a table or an array, and may have missing values; y is a column, or several: a DataFrame or
    an array of shape (N, K), which are then modelled jointly.
    """

    kind: ClassVar[str]
    density_: NITSDensity
    targets_: list[str]

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        *,
        kinds: Mapping[str | int, str] | str | None = None,
        members: int | None = None,
        trees: bool | None = None,
        max_minutes: float | None = None,
        max_steps: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.kinds = kinds
        self.members = members
        self.trees = trees
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.random_state = random_state
        self.verbose = verbose

    def _opened(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Frame, Frame, NDArray[np.float32] | None]:
        """Returns the columns of X and y, those of y with names that X has not, and the weights.

        Rows of weight zero are left out.
        """
        x = self._read(X, reset=True)
        table = targets.read(y, list(x.columns))
        check_consistent_length(np.empty(len(x)), np.empty(len(table)))
        self.targets_ = list(table.columns)
        weight = checked_weight(sample_weight, len(x))
        return counted(x, weight)[0], *counted(table, weight)

    def _learn(self, x: Frame, y: Frame, kinds: dict[str, str], sample_weight: Any) -> None:
        """Fits the density of the columns of y given those of X."""
        # Numbers are read as amounts, also where a model of them would set an index aside.
        amounts = [name for name, v in x.columns.items() if v.array.dtype.kind in "iuf"]
        every: Mapping[Any, str] = {**dict.fromkeys(amounts, "continuous"), **kinds}
        self.density_ = NITSDensity(
            context=list(x.columns),
            kinds=every,
            members=self.members,
            max_minutes=self.max_minutes,
            max_steps=self.max_steps,
            outliers=False,
            trees=self.trees,
            random_state=self.random_state,
            verbose=self.verbose,
        ).fit(Frame({**x.columns, **y.columns}, "numpy"), sample_weight=sample_weight)

    def _kinds(self) -> dict[str, str]:
        """Returns the kinds of targets that the user has named."""
        if isinstance(self.kinds, str):
            return dict.fromkeys(self.targets_, self.kinds)
        return schema.by_name(self.kinds, self.targets_)

    def _read(self, X: Any, *, reset: bool) -> Frame:
        """Returns the columns of X, unlocalized, after scikit-learn's checks."""
        if targets.is_table(X) or isinstance(X, str | Path):
            frame = frames.read(X)
            checked_frame(self, frame, reset=reset)
            return frame
        least = LEAST_ROWS if reset else 1
        array = validate_data(
            self, X, reset=reset, ensure_all_finite="allow-nan", ensure_min_samples=least
        )
        return frames.read(array)

    def _laws(self, X: Any) -> list[Conditional]:
        """Returns the law of each target given each row of X."""
        check_is_fitted(self)
        frame = zones.read(self._read(X, reset=False))
        return targets.laws(self.density_, self.density_._given(frame))

    def _both(self, X: Any, y: Any) -> Frame:
        """Returns the table of X and y that the density was fitted on the like of."""
        check_is_fitted(self)
        x = self._read(X, reset=False)
        columns = self._known(y)
        check_consistent_length(np.empty(len(x)), np.empty(len(columns[0])))
        return Frame({**x.columns, **dict(zip(self.targets_, columns, strict=True))}, "numpy")

    def _known(self, y: Any) -> list[frames.Values]:
        """Returns the columns of y, which must be as many as there were in training."""
        found = list(targets.read(y, []).columns.values())
        if len(found) != len(self.targets_):
            raise ValueError(
                f"y must have {len(self.targets_)} columns, as it had in training, "
                f"but has {len(found)}."
            )
        return found

    def predict_quantiles(self, X: Any, levels: Levels = (0.05, 0.5, 0.95)) -> NDArray[Any]:
        """Returns quantiles of y given each row of X, shape (N, L), or (N, K, L) of K targets."""
        wanted, laws = checked_levels(levels), self._laws(X)
        for law in laws:
            refuse_no_quantiles(law.column, "predict_proba")
        return self._stacked([law.quantiles(wanted) for law in laws])

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Returns the central interval that holds y with a probability, shape (N, 2) or (N, K, 2).

        An interval of each target, whatever the others are.
        """
        if not 0 < coverage < 1:
            raise ValueError(
                f"coverage must lie between 0 and 1, but is {coverage}; divide percentages by 100."
            )
        return self.predict_quantiles(X, ((1 - coverage) / 2, (1 + coverage) / 2))

    def log_prob(self, X: Any, y: Any) -> Numbers:
        """Returns the log-density of y given X, of all targets together, in nats, shape (N,)."""
        return self.density_.score_samples(self._both(X, y))

    def cdf(self, X: Any, y: Any) -> Numbers:
        """Returns P(Y ≤ y | X), shape (N,), or of each of K targets, shape (N, K)."""
        laws = self._laws(X)
        table = zones.read(self._both(X, y))
        pairs = zip(laws, self.targets_, strict=True)
        return self._stacked([law.cdf(table.columns[name]) for law, name in pairs])

    def sample(
        self, X: Any, n: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[Any]:
        """Draws y given each row of X, n times: shape (N, n), or (N, n, K) of K targets."""
        check_is_fitted(self)
        checks.positive("n", n)
        frame = self._read(X, reset=False)
        state = check_random_state(random_state)
        drawn = np.asarray(self.density_.sample(n, random_state=state, given=frame, complete=True))
        found = drawn.reshape(len(frame), n, len(self.targets_))
        return found[:, :, 0] if len(self.targets_) == 1 else found

    def _stacked(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        """Returns what was found of each target: of one as it is, of several along axis 1."""
        return parts[0] if len(parts) == 1 else np.stack(parts, 1)

    def save(self, path: str | Path) -> None:
        """Writes the model to one file; `nits.load` reads it."""
        from nits.tables import supervised_files

        supervised_files.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.non_deterministic = False
        return tags
