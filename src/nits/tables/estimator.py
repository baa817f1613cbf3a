"""`NITSDensity`, a scikit-learn estimator that fits, scores and samples tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nits import checks
from nits.engines.engine import Engine
from nits.model.blocks import groups
from nits.model.reading import Reading
from nits.tables import (
    blurred_training,
    companion,
    contexts,
    defaults,
    guessing,
    members,
    preparing,
    resume,
    sampling,
    scoring,
    search,
)
from nits.tables.answers import Answers
from nits.tables.frames import Frame
from nits.tables.guessing import Guessed
from nits.tables.idle import Idle
from nits.tables.judging import Units
from nits.tables.networks import Sketch
from nits.tables.outliers import Outliers
from nits.tables.predictions import Predictions
from nits.tables.schema import Kinds, Schema, Supports
from nits.tables.shown import Shown
from nits.tables.stream.named import is_source
from nits.tables.validate import checked_frame, checked_weight, counted, told_of
from nits.training.rows import Rows


class NITSDensity(
    Answers,
    Predictions,
    Outliers,
    Shown,
    DensityMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """The exact joint density of a table's columns, or of some of them given the others.

    What each column is, its scale, limits and tails are decided by the likelihood of held-out
    values (docs/tables.md); columns with nothing to model are set aside, with one notice.

    kinds: Column → "continuous" (without atoms), "integer", "ordered" or "categorical", where the
        decision is to be overruled; or one kind for all columns of numbers. Columns are named, here
        and below, by their name or their position.
    support: Column → (low, high): what lies beyond is impossible.
    pool_below: Categories in fewer rows than this are modelled as one; none by default.
    context: Columns that are given and not modelled.
    members: How many networks are trained, on several folds and of several styles; the model is
        their mixture with a linear and an independent one, which is an exact density, too, with
        weights by the likelihood of held-out rows. By default it depends on the table's size, and
        is 1, a lone network, if `max_steps` is named.
    order: The modelled columns in the order in which they are modelled, or the first of them.
        "search" tries several orders of the others and keeps the table's unless another has the
        higher likelihood of held-out rows: the default, unless `members` or `max_steps` are named.
        "table" is the table's; "several" has members in the best orders, which must then do without
        terms of columns; "greedy" takes next the column that those before it predict best.
    hidden, blocks, dropout, learning_rate: Width, depth, dropout and learning rate of the weight
        model; by default they depend on the table's size.
    pnn: Hidden layers of each column's PNN; by default one layer, wider for more rows, which was
        ahead of the paper's 16 × 16 on all tables searched (docs/recipe.md).
    answers: "any" to train a companion for questions with any columns given and any asked, besides
        the model (docs/roles.md); it is the attribute `companion_`, None by default.
    outliers: Whether to train a network for `outlier_scores`, too (docs/prediction.md); by default
        where several members are trained, and no columns are given.
    trees: Whether networks read guesses of boosted trees, too, beside the columns that are given
        (docs/prediction.md); by default some do, and held-out rows weigh them.
    mixing: "rows" to have one network make each whole row, and no curves: draws and scores are then
        as fast as can be; by default columns are mixed as held-out rows prefer (docs/tables.md).
    whiten: Whether to model the residuals of each column's linear regression on the columns before
        it: for tables of real columns only, which nearly determine one another.
    max_minutes, max_steps: The budget; by default it is in steps, by the table's size.
    validation_fraction: Share of the rows that are held out to decide when to stop.
    checkpoint: Folder that keeps the fit as it goes; if it has one of the same rows and parameters
        that was interrupted or killed, `fit` goes on with that (docs/tables.md).
    engine: Where members learn, such as `nits.engines.Ray(workers=4)`; by default side by side on
        this machine's cores, if there is enough work (docs/scale.md). Results do not depend on it.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.
    """

    schema_: Schema
    context_schema_: Schema
    idle_: Idle
    context_reading_: Reading | Guessed | None
    columns_: list[str]
    names_: list[str]

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        *,
        kinds: Kinds = None,
        support: Supports = None,
        pool_below: int = 0,
        context: Sequence[str | int] | None = None,
        members: int | None = None,
        order: Sequence[str | int] | str | None = None,
        hidden: int | None = None,
        blocks: int | None = None,
        dropout: float | None = None,
        pnn: tuple[int, ...] | None = None,
        answers: str | None = None,
        outliers: bool | None = None,
        trees: bool | None = None,
        mixing: str | None = None,
        whiten: bool = False,
        learning_rate: float | None = None,
        max_minutes: float | None = None,
        max_steps: int | None = None,
        validation_fraction: float = 0.1,
        checkpoint: str | Path | None = None,
        engine: Engine | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.kinds = kinds
        self.support = support
        self.pool_below = pool_below
        self.context = context
        self.members = members
        self.order = order
        self.hidden = hidden
        self.blocks = blocks
        self.dropout = dropout
        self.pnn = pnn
        self.answers = answers
        self.outliers = outliers
        self.trees = trees
        self.mixing = mixing
        self.whiten = whiten
        self.learning_rate = learning_rate
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.checkpoint = checkpoint
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NITSDensity:
        """Learns the density of the rows of X: a DataFrame, Arrow table, array, or file's path.

        Or the path of a folder of Parquet or CSV files, a pattern such as "folder/*.parquet", an
        address such as "s3://bucket/table", or a dataset of Arrow, larger than memory.
        """
        if self.members is not None:
            checks.positive("members", self.members)
        companion.checked(self.answers)
        members.shaped(self.mixing)
        if y is not None:
            told_of("y is not modelled and has no influence here; make it a column of X.")
        guessing.refuse_without_context(self, in_memory=not is_source(X))
        if is_source(X):
            from nits.tables.stream import fitting

            fitting.fit(self, X, sample_weight)
            return self
        frame = checked_frame(self, X, reset=True)
        frame, weight = counted(frame, checked_weight(sample_weight, len(frame)))
        seed = resume.chosen(self)
        preparing.refuse_too_wide(self, frame, len(frame))
        preparing.decide(self, frame)
        heads = [column.head(preparing.READ_BY, 0) for column in self.schema_.columns]
        sizes = len(frame), len(heads), len(list(groups(heads)))
        plan = preparing.plan(self, *sizes)
        numbers, units = self.schema_.numbers(frame)
        given = self._given(frame)
        preparing.read(self, given, plan.knots)
        given = guessing.added(self, given, numbers, weight, plan.knots, seed)
        if isinstance(self.context_reading_, Guessed):
            plan = preparing.plan(self, *sizes, guessed=True)
        self.orders_: list[list[int] | None] = [None]
        blur = blurred_training.prepared(self, frame, given, weight, plan)
        del frame  # copies of the table's columns: training needs the memory
        rows = Rows(
            torch.from_numpy(numbers),
            given if self.context_reading_ is not None else None,
            None if weight is None else torch.from_numpy(weight),
            read=None if self.context_reading_ is None else self.context_reading_.of_rows,
        )
        self._learn(rows, units, blur, plan, seed)
        return self

    def _learn(
        self,
        rows: Rows,
        units: Units,
        blur: blurred_training.Prepared | None,
        plan: defaults.Plan,
        seed: int,
    ) -> None:
        """Learns from rows; see `members.learned`."""
        self.orders_, self.order_trials_ = search.decided(self, rows, units, plan, seed)
        found = members.learned(self, rows, units, plan, seed)
        self.model_, self.members_, self.sorts_ = found.density, found.members, found.sorts
        self.history_, self.companion_ = found.history, found.companion
        self.held_out_, self.held_out_error_ = found.held_out, found.error
        self.outliers_ = blurred_training.learned(self, blur, rows, plan, seed)
        self.schema_ = found.schema or self.schema_

    @property
    def order_(self) -> list[int] | None:
        """Positions of the columns in modelling order, of the best if members have several."""
        return self.orders_[0]

    @property
    def sketch_(self) -> Sketch:
        """What a network of this table is built from."""
        reading = self.context_reading_
        given = () if reading is None else reading.heads
        guesses = len(reading.guesses.heads) if isinstance(reading, Guessed) else 0
        return Sketch(self.schema_.columns, given, self.order_, guesses)

    def _given(self, frame: Frame, *, strict: bool = False) -> torch.Tensor:
        """Returns the numbers of the columns that are given; see `contexts.numbers`."""
        return contexts.numbers(self.context_schema_, frame, strict=strict)

    def _context(self, given: torch.Tensor) -> torch.Tensor | None:
        """Returns what the networks read of the numbers of the columns that are given."""
        return None if self.context_reading_ is None else self.context_reading_.of_rows(given)

    def score_samples(self, X: Any, per_column: bool = False) -> NDArray[np.float64]:
        """Returns the log-density of each row in nats, shape (N,), or of each column, shape (N, D).

        Densities are in the table's units for continuous columns, probabilities for the others. A
        missing value has the probability of a hole. What was never seen has a small probability
        (docs/tables.md; `unseen` counts it), what `support` rules out −inf.
        """
        check_is_fitted(self)
        frame = checked_frame(self, X, reset=False)
        for name, count in self.idle_.changed(frame).items():
            told_of(f"column {name!r} was constant in training, but differs in {count} rows here.")
        return scoring.terms(self, frame) if per_column else scoring.rows(self, frame)

    def unseen(self, X: Any) -> NDArray[np.bool_]:
        """Returns which entries were never seen in training, though they could be, shape (N, D)."""
        check_is_fitted(self)
        return self.schema_.encode(checked_frame(self, X, reset=False)).unseen

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        given: Any = None,
        complete: bool = False,
    ) -> Any:
        """Draws rows, as a table of the type that the model was fitted on, with holes as it had.

        given: What is known of some columns, {name: value}, as in `given`; or, for a model with a
            context, a table of the context's columns, for each row of which n_samples are drawn.
        complete: Whether each value is drawn given that it is not missing, so there are no holes.
        """
        check_is_fitted(self)
        if given is not None and not sampling.comes_first(self, given):
            return self._under(given, complete).sample(n_samples, random_state)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return sampling.drawn(self, n_samples, seed, given, complete)

    def save(self, path: str | Path) -> None:
        """Writes the model to one file; `nits.load` reads it."""
        from nits.tables import persistence

        persistence.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags
