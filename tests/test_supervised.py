"""NITSRegressor and NITSClassifier: scikit-learn's contract, several targets, missing values."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import nits
from nits import NITSClassifier, NITSRegressor
from nits.tables import targets

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "a weight of two and a row twice are shuffled "
    "differently, so the same optimum is approached along another path",
}
BY_LUCK = {
    "check_methods_subset_invariance": "float32: products of one row and of many round differently"
}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [NITSRegressor(max_steps=5), NITSClassifier(max_steps=5)],
    expected_failed_checks=lambda e: EXPECTED,
)
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    if check.func.__name__ in BY_LUCK:
        pytest.skip(BY_LUCK[check.func.__name__])
    check(estimator)
