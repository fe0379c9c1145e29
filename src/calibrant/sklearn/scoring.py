"""Any estimator of calibration as a scorer of models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.sklearn.held_out import as_categorical, class_numbers, distribution, response


@dataclass(frozen=True)
class Scorer:
    """What :func:`scorer` makes: a function of a fitted model and of rows."""

    estimator: Callable[..., Any]
    greater_is_better: bool = False

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The estimate for these rows, with the sign that makes larger better."""
        targets, predictions = problem_of(model, X, np.asarray(y))
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        value = float(self.estimator(targets, predictions, **options))
        return value if self.greater_is_better else -value

    def __repr__(self) -> str:
        return f"scorer({self.estimator!r}, greater_is_better={self.greater_is_better})"


def scorer(estimator: Callable[..., Any], *, greater_is_better: bool = False) -> Scorer:
    """An estimator of calibrant, such as ``ECE()``, ``SKCE()`` or ``Variational()``, as scikit-learn's ``scoring=``.

    Errors and losses come with a minus sign, as in scikit-learn's ``neg_log_loss``, so that larger is better;
    ``greater_is_better=True`` keeps the sign. Of classifiers it takes ``predict_proba``, with labels of any kind found in
    ``classes_``: class 1 of two is ``classes_[1]``, and a class that the model has not seen has probability 0. Of
    regressors it takes ``predict_dist(X)`` or ``predict(X, return_std=True)``.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant import ECE
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(float(cross_val_score(GaussianNB(), X, y, scoring=scorer(ECE())).mean()), 2)
    -0.06
    """
    if not callable(estimator):
        raise InputError(f"estimator must be an estimator such as ECE(); got {estimator!r}")
    return Scorer(estimator, greater_is_better)


def problem_of(model: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, Distribution]:
    """Targets and predictions of a model."""
    if not is_classifier(model):
        return y, distribution(model, X)
    classes, table = class_probabilities(model, X, y)
    return class_numbers(y, classes), as_categorical(table, classes)


def class_probabilities(model: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes of a classifier and of the rows, and the probability of each; of one that it has not seen 0."""
    if not hasattr(model, "predict_proba"):
        raise InputError(f"{type(model).__name__} has no predict_proba: wrap it in RecalibratedClassifier")
    known = np.asarray(model.classes_)
    classes = np.concatenate([known, np.setdiff1d(y, known)])
    return classes, response(model, X, classes)
