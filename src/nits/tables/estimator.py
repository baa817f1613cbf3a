"""`NITSDensity`, a scikit-learn estimator that fits, scores and samples tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nits.chunks import slices
from nits.model.joint import NITS
from nits.model.reading import Reading
from nits.model.whitened import Whitened
from nits.tables import defaults, frames, orders
from nits.tables.columns import Column
from nits.tables.frames import Frame
from nits.tables.schema import Schema, Support
from nits.tables.validate import checked_frame, checked_weight
from nits.training.fit import fit as train
from nits.training.recipe import Recipe
from nits.training.rows import Rows, inside, parted

SCORED_AT_ONCE = 8192


class NITSDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """The exact joint density of a table's columns, or of some of them given the others.

    kinds: Column name → "continuous", "integer" or "categorical", where the guess would be wrong.
    support: Column name → (low, high), where a column has limits.
    pool_below: Categories in fewer rows than this are modelled as one; none by default.
    context: Names, or positions in an array, of columns that are given and not modelled.
    order: Names of the modelled columns in the order in which they are modelled, by default that of
        the table; or "greedy": each next column is the one that those before it predict best.
    hidden, blocks, dropout, learning_rate: Width, depth, dropout and learning rate of the weight
        model; by default they depend on the table's size.
    pnn: Hidden layers of each column's PNN. One layer of 32 was ahead of the paper's 16 × 16, which
        heads have by default, on all tables searched (docs/recipe.md), with a third of the weights.
    whiten: Whether to model the residuals of each column's linear regression on the columns before
        it: for tables of real columns only, which nearly determine one another.
    max_minutes, max_steps: The budget; by default it is in steps, by the table's size.
    validation_fraction: Share of the rows that are held out to decide when to stop.
    random_state: Seed of everything that is random.
    verbose: Whether to show progress.
    """

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        support: Mapping[str, Support] | None = None,
        pool_below: int = 0,
        context: Sequence[str | int] | None = None,
        order: Sequence[str] | str | None = None,
        hidden: int | None = None,
        blocks: int | None = None,
        dropout: float | None = None,
        pnn: tuple[int, ...] = (32,),
        whiten: bool = False,
        learning_rate: float | None = None,
        max_minutes: float | None = None,
        max_steps: int | None = None,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.kinds = kinds
        self.support = support
        self.pool_below = pool_below
        self.context = context
        self.order = order
        self.hidden = hidden
        self.blocks = blocks
        self.dropout = dropout
        self.pnn = pnn
        self.whiten = whiten
        self.learning_rate = learning_rate
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NITSDensity:
        """Learns the density of the rows of X: a DataFrame, Arrow table, array, or file's path."""
        frame = checked_frame(self, X, reset=True)
        weight = checked_weight(sample_weight, len(frame))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        context = orders.names_of(self.context, list(frame.columns))
        if len(context) == len(frame.columns):
            raise ValueError("context must leave a column to model, but has all; take one out.")
        schema = Schema.infer(frame, self.kinds, self.support, self.pool_below)
        self.schema_ = schema.select([name for name in schema.names if name not in context])
        self.context_schema_ = schema.select(context)
        plan = defaults.plan(len(frame), len(self.schema_.columns))
        self.knots_ = plan.knots
        x, given = self._numbers(frame)
        self._build(x, given, plan, seed)
        rows = Rows(x, self._context(given), None if weight is None else torch.from_numpy(weight))
        fitted, held_out = parted(len(rows), self.validation_fraction, seed)
        self._train(rows.subset(fitted), rows.subset(held_out), plan, seed)
        self.held_out_ = self._in_units(rows.subset(held_out), frame.take(held_out.numpy()))
        return self

    def _build(self, x: torch.Tensor, given: torch.Tensor, plan: defaults.Plan, seed: int) -> None:
        heads = [column.head(tuple(self.pnn), plan.knots) for column in self.schema_.columns]
        read = [column.head(tuple(self.pnn), plan.knots) for column in self.context_schema_.columns]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            density = NITS.mlp(
                heads,
                hidden=self.hidden or plan.hidden,
                blocks=plan.blocks if self.blocks is None else self.blocks,
                dropout=plan.dropout if self.dropout is None else self.dropout,
                context=sum(head.inputs for head in read),
                order=orders.positions(self.order, self.schema_.names, x.numpy()),
            )
        self.model_ = Whitened(density) if self.whiten else density
        self.context_reading_ = Reading(read) if read else None
        if self.context_reading_ is not None:
            self.context_reading_.start_at(given.t())

    def _train(self, rows: Rows, held_out: Rows, plan: defaults.Plan, seed: int) -> None:
        missing = any(head.optional for head in self.model_.heads)
        recipe = Recipe(
            batch_size=plan.batch_size,
            learning_rate=self.learning_rate or plan.learning_rate,
            optimizer=plan.optimizer,
            hide=0.1 if missing else 0.0,
        )
        steps = self.max_steps if self.max_steps or self.max_minutes else plan.steps
        self.history_ = train(
            self.model_,
            rows.x,
            context=rows.context,
            sample_weight=rows.weight,
            validation=held_out if len(held_out) else 0.0,
            recipe=recipe,
            max_steps=steps,
            max_minutes=self.max_minutes,
            seed=seed,
            progress=self.verbose,
        ).to_dict()

    def _in_units(self, held_out: Rows, frame: Frame) -> float | None:
        """Returns the mean log-density of held-out rows in the units of `score_samples`, or None.

        It is weighted if the rows are; rows outside the support, at −inf, are left out.
        """
        if not len(held_out):
            return None
        numbers = torch.as_tensor(held_out.x).double().numpy()
        units = (self.schema_.log_measure(numbers) + self.schema_.log_share(frame)).sum(1)
        counted = inside(self.model_, held_out).double()
        if held_out.weight is not None:
            counted *= torch.as_tensor(held_out.weight)
        mean = np.average(units, weights=counted.numpy())
        return float(self.history_["final_validation"] + mean)

    def _numbers(self, frame: Frame) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the numbers of the modelled columns and of the given ones, in float32."""
        parts = (self.schema_.encode(frame), self.context_schema_.encode(frame))
        modelled, given = (torch.from_numpy(part.astype(np.float32)) for part in parts)
        return modelled, given

    def _context(self, given: torch.Tensor) -> torch.Tensor | None:
        if self.context_reading_ is None:
            return None
        features: torch.Tensor = self.context_reading_(given.t())
        return features.t().contiguous()

    def score_samples(self, X: Any, per_column: bool = False) -> NDArray[np.float64]:
        """Returns the log-density of each row in nats, shape (N,), or of each column, shape (N, D).

        Densities are in the table's units for continuous columns, probabilities for the others.
        Missing values are left out of a row's density; a row outside the support has −inf.
        """
        check_is_fitted(self)
        frame = checked_frame(self, X, reset=False)
        x, given = self._numbers(frame)
        parts = []
        with torch.no_grad():
            for rows in slices(len(x), SCORED_AT_ONCE):
                parts.append(self.model_.log_prob_per_column(x[rows], self._context(given[rows])))
        units = self.schema_.log_measure(x.double().numpy()) + self.schema_.log_share(frame)
        shares = torch.cat(parts).double().numpy() + units
        return shares if per_column else shares.sum(1)

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        given: Any = None,
    ) -> Any:
        """Draws rows, as a table of the type that the model was fitted on.

        given: Values of leading columns, {name: value}; or, for a model with a context, a table
            of the context's columns, for each row of which n_samples rows are drawn.
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        context, kept = self._conditions(n_samples, given)
        count = n_samples if context is None else len(context)
        numbers = self.model_.sample(count, context, seed, given=kept).double().numpy()
        columns = self.schema_.decode(numbers)
        if kept is not None:  # exact to the last digit, which float32 would lose
            columns |= {name: np.full_like(columns[name], value) for name, value in given.items()}
        dtypes = [column.dtype for column in self.schema_.columns]
        return frames.write(columns, dtypes, self.schema_.form)

    def _conditions(self, n: int, given: Any) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Returns the context, a row per sample, or the values to keep."""
        if self.context_reading_ is not None:
            if given is None:
                raise ValueError(
                    f"this model needs the columns {', '.join(self.context_schema_.names)}; "
                    "pass a table with them as given=."
                )
            numbers = self.context_schema_.encode(frames.read(given)).astype(np.float32)
            return self._context(torch.from_numpy(numbers).repeat_interleave(n, 0)), None
        if given is None:
            return None, None
        kept = torch.full((len(self.schema_.columns),), torch.nan)
        for name, value in given.items():
            position = orders.position(name, self.schema_.names)
            column = self.schema_.columns[position]
            kept[position] = float(column.encode(frames.plain(np.array([value])))[0])
        return None, kept

    def predict_quantiles(
        self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> NDArray[Any]:
        """Returns quantiles of the modelled column given each row of X, shape (N, len(levels))."""
        column, conditional = self._conditional(X)
        u = torch.tensor(list(levels)).unsqueeze(1).expand(-1, *conditional.batch_shape)
        with torch.no_grad():
            found = conditional.icdf(u).double().numpy()
        return np.stack([column.decode(row) for row in found], 1)

    def predict_mean(self, X: Any) -> NDArray[np.float64]:
        """Returns the mean of the modelled column given each row of X, shape (N,).

        It is the mean of 1,000 quantiles at evenly spaced levels; a category has no mean.
        """
        column, conditional = self._conditional(X)
        if column.kind == "categorical":
            raise ValueError(f"column {column.name!r} is categorical, so it has no mean.")
        u = ((torch.arange(1000) + 0.5) / 1000).unsqueeze(1).expand(-1, *conditional.batch_shape)
        with torch.no_grad():
            found = conditional.icdf(u).double().numpy()
        mean: NDArray[np.float64] = (
            np.stack([column.decode(row) for row in found]).astype(np.float64).mean(0)
        )
        return mean

    def cdf(self, X: Any) -> NDArray[np.float64]:
        """Returns, for each row of X, the probability of a modelled value at most as large."""
        column, conditional = self._conditional(X)
        values = column.encode(frames.read(X).columns[column.name])
        with torch.no_grad():
            found: torch.Tensor = conditional.cdf(torch.from_numpy(values.astype(np.float32)))
        return found.double().numpy()

    def _conditional(self, X: Any) -> tuple[Column, Any]:
        """Returns the one modelled column and its distribution given each row."""
        check_is_fitted(self)
        if len(self.schema_.columns) != 1:
            raise ValueError(
                f"one column must be modelled for this, but {len(self.schema_.columns)} are; "
                "name the others in context=."
            )
        given = torch.from_numpy(self.context_schema_.encode(frames.read(X)).astype(np.float32))
        with torch.no_grad():
            found = self.model_.conditionals(torch.zeros(len(given), 1), self._context(given))[0]
        return self.schema_.columns[0], found

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
