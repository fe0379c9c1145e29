"""What scikit-learn asks of every estimator."""

import pytest

pytest.importorskip("sklearn")

from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, RidgeClassifier

from calibrant.recalibration import Temperature
from calibrant.sklearn import RecalibratedClassifier, RecalibratedRegressor

try:
    from sklearn.utils.estimator_checks import parametrize_with_checks
except RuntimeError as error:  # scikit-learn 1.6 beside array-api-compat
    pytest.skip(f"run with SCIPY_ARRAY_API=1: {error}", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore::calibrant.sklearn.RecalibrationWarning"),
    pytest.mark.filterwarnings("ignore:The least populated class"),  # in data of scikit-learn 1.6
]


def failures(estimator):
    """Checks that fail by design, with the reason."""
    if isinstance(estimator, RecalibratedClassifier):
        # weights are relative to maps that shrink by the number of rows, as a temperature does where classes are told apart
        # without error: a weight of two is not two independent rows
        names = ("on_dense_data", "on_sparse_data")
        return {f"check_sample_weight_equivalence_{name}": "weights are importance, not repetitions" for name in names}
    if isinstance(estimator.estimator, BayesianRidge):
        return {"check_dtype_object": "BayesianRidge.predict(X, return_std=True) fails on X of dtype object by itself"}
    return {}


@parametrize_with_checks(
    [
        RecalibratedClassifier(LogisticRegression()),
        RecalibratedClassifier(RidgeClassifier(), Temperature(), ensemble=False),
        RecalibratedRegressor(LinearRegression()),
        RecalibratedRegressor(BayesianRidge()),
    ],
    expected_failed_checks=failures,
)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)
