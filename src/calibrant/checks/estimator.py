"""Estimators do not depend on order, and fast routes give the plain values."""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._validate import InputError, check_is
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, EachDraw


def check_estimator(estimator: BaseEstimator, y_true: np.ndarray, predictions: Distribution) -> None:
    """The order of rows does not matter; reduced problems and resamples in bulk give the plain values; of weights only
    the ratios matter; settings are values.

    For estimators that use the order (blocks, locations drawn from the rows) this fails by design.

    >>> from calibrant import ECE, Categorical
    >>> check_estimator(ECE(), np.array([0, 1, 1]), Categorical([0.2, 0.7, 0.9]))
    """
    check_is(estimator, BaseEstimator, "estimator", "an estimator such as ECE()")
    check_is(predictions, Distribution, "predictions", "a distribution such as Categorical(y_pred)")
    rng = np.random.default_rng(0)
    result = estimator(y_true, predictions)
    value = float(result)
    assert result.n == len(predictions), f"n is {result.n}, not the number of rows"
    assert estimator.least <= value <= estimator.most, f"{value} lies outside of what the estimator says it can be"
    order = rng.permutation(len(predictions))
    shuffled = float(estimator(y_true[order], predictions[order]))
    assert _close(value, shuffled), f"the order of rows matters: {value} and {shuffled}"
    reduced, targets, smaller = estimator.reduce(predictions.as_targets(y_true), predictions.checked())
    assert _close(float(reduced(targets, smaller)), value), "the reduced problem has another value"
    for weights in (None, rng.uniform(0.5, 2, len(predictions))):
        drawn = smaller.sample(rng, 5)
        try:
            slow = EachDraw(reduced, smaller, weights)(drawn)
        except InputError:
            assert weights is not None, "a resample is refused"
            continue
        assert _close(reduced.given(smaller, weights)(drawn), slow), (
            "resamples in bulk differ from resamples one by one"
        )
    _check_weights(estimator, y_true, predictions, rng)
    copy = replace(estimator)  # type: ignore[type-var]
    assert copy == estimator, "settings that are equal make different estimators"
    assert hash(copy) == hash(estimator), "equal estimators have different hashes"


def _check_weights(
    estimator: BaseEstimator, y_true: np.ndarray, predictions: Distribution, rng: np.random.Generator
) -> None:
    """Of weights only the ratios matter, of whole ones too."""
    w = rng.integers(1, 4, len(predictions)).astype(np.float64)
    try:
        one, other = (estimator(y_true, predictions, sample_weight=c * w) for c in (1.0, 1.5))
    except InputError:
        return
    assert _close(float(one), float(other)), f"weights and the same times 1.5 give {float(one)} and {float(other)}"
    errors = [np.nan if x.standard_error is None else x.standard_error for x in (one, other)]
    is_same = np.allclose(errors[0], errors[1], rtol=1e-8, equal_nan=True)
    assert is_same, f"weights and the same times 1.5 have the errors {errors}"


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-10, atol=1e-14))
