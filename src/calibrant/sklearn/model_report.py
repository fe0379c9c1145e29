"""The report on a fitted model, from its inputs."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from calibrant._validate import InputError, as_column, did_you_mean, of_what
from calibrant.reports.evaluation import Report, evaluate
from calibrant.sklearn.scoring import class_probabilities, problem_of


def evaluate_model(model: Any, X: Any, y: Any, *, by: Any = None, **options: Any) -> Report:
    """Can the probabilities of a fitted model be believed on these rows? They must be new to it.

    Of classifiers it takes ``predict_proba`` and the names in ``classes_``; ``pos_label`` says which of two is the event, the
    second unless it is given. Of regressors it takes ``predict_dist(X)`` or ``predict(X, return_std=True)``. ``by`` may
    name columns of X. Everything else is as of :func:`calibrant.evaluate`.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(600, 20, n_redundant=10, flip_y=0.2, random_state=0)
    >>> names = np.array(["sound", "faulty"])[y]
    >>> model = GaussianNB().fit(X[:300], names[:300])
    >>> evaluate_model(model, X[300:], names[300:], n_resamples=199).verdict.headline
    'Do not take these probabilities at face value: the model is over-confident.'
    """
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise InputError(f"model must be a fitted model of scikit-learn; got {of_what(model)}")
    names = [by] if isinstance(by, str) else by
    if isinstance(names, list) and hasattr(X, "columns") and len(names) < len(y):
        columns = list(X.columns)
        for name in names:
            if name not in columns:
                raise InputError(f"by={name!r} is no column of X{did_you_mean(str(name), list(map(str, columns)))}")
        by = X[names]
    options = {"title": f"Calibration of {type(model).__name__}", "by": by, **options}
    if is_classifier(model):
        truth = as_column(y, "y")
        classes, table = class_probabilities(model, X, truth)
        return evaluate(truth, table, labels=classes, **options)
    return evaluate(*problem_of(model, X, np.asarray(y)), **options)
