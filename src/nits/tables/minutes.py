"""How the minutes that a user names are parted: trials of orders, members, the outlier scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nits.tables.defaults import Plan, seconds_per_step

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

TRIALS = 0.1
"""Of the budget for all members, what trials of orders take."""

OUTLIERS = 0.1
"""Of the same budget, what the network of outlier scores may take at most."""

LONGER = 2.0
"""Times as long as it should take, for which there is room: the machine may be slower, or busy."""

OUTLIER_STEPS, OUTLIER_BATCH = 1500, 128
"""Steps of that network, and rows of each."""


def of_members(estimator: NITSDensity, plan: Plan) -> float | None:
    """Returns the minutes that members have, if the user has named some."""
    if estimator.max_minutes is None:
        return None
    tried = TRIALS if estimator.order_trials_ else 0.0
    beside = of_outliers(estimator, plan) if scores_outliers(estimator, plan) else None
    return (1 - tried) * estimator.max_minutes - (beside or 0.0)


def of_outliers(estimator: NITSDensity, plan: Plan) -> float | None:
    """Returns the minutes that the network of outlier scores has, if the user has named some.

    It is at most as large as a member.
    """
    if estimator.max_minutes is None:
        return None
    alone = plan._replace(batch_size=OUTLIER_BATCH)
    seconds = OUTLIER_STEPS * seconds_per_step(alone, len(estimator.schema_.columns), 1)
    return min(OUTLIERS * estimator.max_minutes, LONGER * seconds / 60)


def scores_outliers(estimator: NITSDensity, plan: Plan) -> bool:
    """Returns whether there is to be a network of outlier scores."""
    if estimator.outliers is None:
        return plan.members > 1 and not estimator.context
    return bool(estimator.outliers)
