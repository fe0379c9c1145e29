"""A classifier with its probabilities put right."""

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from calibrant._validate import InputError
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.stacking.default import Default
from calibrant.results import how_many
from calibrant.sklearn.held_out import (
    HeldOutPart,
    RecalibrationWarning,
    as_categorical,
    as_rows,
    check_recalibrator,
    class_numbers,
    features_of,
    fitted,
    gives_probabilities,
    held_out,
    learnt,
    pooled,
    probabilities,
    response,
    spread,
)


class RecalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities go through a map that was learnt from rows it had not seen.

    ``predict_proba(X) = map(estimator.predict_proba(X))``. The map is that of a ``recalibrator`` of
    ``calibrant.recalibration``, :class:`Default` if none is given, fitted on the predictions that models of the other
    folds of ``cv`` make of each fold. The models of the folds are kept and their mapped probabilities averaged; with
    ``ensemble=False`` the estimator is fitted once more, on all rows, and predicts alone: smaller and faster, mostly a
    little less good. ``FrozenEstimator(model)`` is not fitted again: all rows given are taken to be new to it,
    and train the map. ``cv`` is what scikit-learn takes, as long as it holds no row out twice.

    Estimators without ``predict_proba`` start from the softmax (of two classes the sigmoid) of their decision values, in
    units of their root mean square; every recalibrator finds the right unit by itself. A class that the model of
    a fold has not seen has probability 0 there, and the fold's rows of that class are left out, with a warning.

    ``recalibration_`` is the map with its scores on held-out rows. Where they got worse, ``fit`` warns
    (:class:`RecalibrationWarning`) and uses the map all the same: of a calibrated model that is a matter of chance.
    Other fitted attributes: ``classes_``, ``estimators_``, ``n_features_in_``, ``feature_names_in_``. As
    scikit-learn's ``CalibratedClassifierCV``, with one map of all held-out rows in place of one per fold.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2_000, 20, n_redundant=10, flip_y=0.2, random_state=0)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.recalibration_
    recalibration = Default()
      log loss  1.4... -> 0.36... held out (-1.1 ± 0.0...)
      Brier     0.11... -> 0.10... held out (-0.01... ± 0.00...)
      n         2,000
    >>> model.predict_proba(X).shape
    (2000, 2)
    """

    def __init__(
        self,
        estimator: Any,
        recalibrator: Recalibrator | None = None,
        *,
        cv: Any = 5,
        ensemble: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit models and map; weights count for both, and rows without weight for nothing.

        ``groups`` has one label per row: rows of a group are held out together, from models and from maps. With a number of folds,
        ``cv`` is then scikit-learn's StratifiedGroupKFold.
        """
        check_recalibrator(self.recalibrator)
        is_probability = gives_probabilities(self.estimator)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        rows = as_rows(X, labels, sample_weight, groups)
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        self.classes_ = np.asarray(self.estimator.classes_) if is_frozen else np.unique(rows.y)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {self.classes_[0]!r}: at least two classes are needed")
        predict = partial(response, classes=self.classes_)
        parts = held_out(self.estimator, rows, predict, cv=self.cv, n_jobs=self.n_jobs, is_classifier=True)
        which, values = pooled(parts if is_frozen else _known(parts, rows.y))
        weights = None if rows.weights is None else rows.weights[which]
        together = None if rows.groups is None else rows.groups[which]
        self.decision_scale_ = None if is_probability else spread(values, weights)
        targets = class_numbers(rows.y[which], self.classes_)
        predictions = as_categorical(probabilities(values, self.decision_scale_), self.classes_)
        recalibrator = Default() if self.recalibrator is None else self.recalibrator
        self.recalibration_ = learnt(recalibrator, targets, predictions, weights, type(self).__name__, together)
        keep = self.ensemble and not is_frozen
        self.estimators_ = [part.model for part in parts] if keep else [fitted(self.estimator, rows)]
        for name, value in features_of(self.estimators_[0]).items():
            setattr(self, name, value)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Recalibrated probabilities of ``classes_``, ``(n, k)``."""
        check_is_fitted(self)
        values = [response(model, X, self.classes_) for model in self.estimators_]
        found = [self.recalibration_(probabilities(value, self.decision_scale_)) for value in values]
        return np.mean(found, axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.classifier_tags.multi_class = own.classifier_tags is None or own.classifier_tags.multi_class
        return tags


def _known(parts: list[HeldOutPart], y: np.ndarray) -> list[HeldOutPart]:
    """Rows whose class their model had seen, with a warning where others were left out."""
    seen = [np.isin(y[part.rows], part.model.classes_) for part in parts]
    left_out = np.concatenate([y[part.rows[~kept]] for part, kept in zip(parts, seen, strict=True)])
    if len(left_out):
        warnings.warn(
            f"models had not seen the classes {np.unique(left_out)[:5].tolist()} of {how_many(len(left_out), 'row')} that "
            "were held out from them: left out of the map",
            RecalibrationWarning,
            stacklevel=3,
        )
    return [HeldOutPart(p.model, p.rows[kept], p.predictions[kept]) for p, kept in zip(parts, seen, strict=True)]
