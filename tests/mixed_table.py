"""A table with columns of every kind, and a small model of it, for tests that need both."""

from typing import Any

import numpy as np
import pandas

from nits.tables.estimator import NITSDensity


def mixed(rows: int = 400, seed: int = 0) -> Any:
    """Real numbers, integers, strings, booleans, zeros among gammas, times and decimals.

    The real numbers and the strings have missing values.
    """
    rng = np.random.default_rng(seed)
    size = rng.normal(50, 10, rows)
    frame = pandas.DataFrame(
        {
            "size": size,
            "count": rng.poisson(np.exp(size / 30)),
            "city": rng.choice(["Lima", "Oslo", "Rome"], rows),
            "member": rng.random(rows) < 0.4,
            "rain": np.where(rng.random(rows) < 0.3, 0.0, rng.gamma(2.0, 3.0, rows)),
            "seen": pandas.Timestamp("2024-01-01")
            + pandas.to_timedelta(rng.random(rows) * 1e6, unit="s"),
            "price": np.round(rng.normal(3, 1, rows), 1),
        }
    )
    frame.loc[::9, "size"] = np.nan
    frame.loc[::11, "city"] = None
    return frame


def small(**options: Any) -> NITSDensity:
    return NITSDensity(**{"max_steps": 20, "hidden": 16, "blocks": 1, "random_state": 0, **options})
