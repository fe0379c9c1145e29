"""A regressor with its distributions put right."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.predictive.quantile import QuantileRecalibration
from calibrant.recalibration.predictive.variance import VarianceScaling
from calibrant.recalibration.stacking.stack import Best
from calibrant.sklearn.held_out import (
    as_rows,
    check_recalibrator,
    features_of,
    fitted,
    held_out,
    learnt,
    means_and_spreads,
    pooled,
)

DEFAULT = Best((VarianceScaling(), QuantileRecalibration()))

MIN_SPREAD = 1e-6
"""The smallest spread, in standard deviations of the targets: certainty is no distribution."""


class RecalibratedRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose predictions are distributions, put right by a map learnt from rows it had not seen.

    Regressors with ``predict(X, return_std=True)``, such as Gaussian processes and Bayesian ridge regression, predict
    ``Normal(mean, std)``. All others start from ``Normal(mean, s)``, with s the standard deviation of the targets; every
    recalibrator finds the spread of their errors by itself. The map is that of a ``recalibrator`` of
    ``calibrant.recalibration``, fitted on predictions that models of the other folds of ``cv`` make of each fold: if none
    is given, the better of :class:`VarianceScaling` and :class:`QuantileRecalibration`, which learns the shape of the
    errors, by held-out log loss. The estimator is then fitted on all rows. ``FrozenEstimator(model)`` is not fitted again:
    all rows given train the map.

    Standard deviations below a millionth of that of the targets count as this. ``recalibration_`` is the map with its
    scores on held-out rows; where they got worse, ``fit`` warns. Other fitted attributes: ``estimator_``,
    ``n_features_in_``, ``feature_names_in_``. Kuleshov, Fenner & Ermon (2018); Levi et al. (2022).

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RecalibratedRegressor(RandomForestRegressor(20, random_state=0)).fit(X[:300], y[:300])
    >>> model.predict_quantiles(X[300:302], [0.05, 0.5, 0.95]).round(-1)
    array([[170., 250., 350.],
           [  0.,  90., 190.]])
    """

    def __init__(
        self,
        estimator: Any,
        recalibrator: Recalibrator | None = None,
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit model and map; weights count for both, and rows without weight for nothing.

        ``groups`` has one label per row: rows of a group are held out together, from models and from maps. With a number of folds,
        ``cv`` is then scikit-learn's GroupKFold.
        """
        check_recalibrator(self.recalibrator)
        targets = column_or_1d(y, warn=True)
        assert_all_finite(targets, input_name="y")
        rows = as_rows(X, targets.astype(np.float64), sample_weight, groups)
        parts = held_out(self.estimator, rows, means_and_spreads, cv=self.cv, n_jobs=self.n_jobs, is_classifier=False)
        which, values = pooled(parts)
        weights = None if rows.weights is None else rows.weights[which]
        together = None if rows.groups is None else rows.groups[which]
        self.target_spread_ = _standard_deviation(rows.y, rows.weights) or 1.0
        recalibrator = DEFAULT if self.recalibrator is None else self.recalibrator
        self.recalibration_ = learnt(
            recalibrator, rows.y[which], self._normal(values), weights, type(self).__name__, together
        )
        self.estimator_ = fitted(self.estimator, rows)
        for name, value in features_of(self.estimator_).items():
            setattr(self, name, value)
        return self

    def _normal(self, values: np.ndarray) -> Normal:
        mean, std = values.T
        scale = np.where(np.isnan(std), self.target_spread_, std)
        return Normal(mean, np.maximum(scale, MIN_SPREAD * self.target_spread_))

    def predict_dist(self, X: Any) -> Distribution:
        """Recalibrated distributions, one per row: any estimator, test or report of calibrant takes them."""
        check_is_fitted(self)
        found: Distribution = self.recalibration_(self._normal(means_and_spreads(self.estimator_, X)))
        return found

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means of the recalibrated distributions, ``(n,)``, and with ``return_std=True`` their standard deviations."""
        found = self.predict_dist(X)
        return (found.mean, found.std) if return_std else found.mean

    def predict_quantiles(self, X: Any, levels: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Values below which the target lies with the probabilities ``levels``, ``(n, m)``."""
        u = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if u.ndim != 1 or not np.all((u > 0) & (u < 1)):
            raise InputError(f"levels must lie strictly between 0 and 1; got {levels!r}")
        return to_numpy(self.predict_dist(X).quantile(u))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _standard_deviation(y: np.ndarray, weights: np.ndarray | None) -> float:
    mean = np.average(y, weights=weights)
    return float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
