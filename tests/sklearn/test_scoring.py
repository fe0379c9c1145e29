import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import make_classification, make_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB

from calibrant import ECE, SKCE, Brier, Laplace, LogLoss, Normal, Variational
from calibrant._validate import InputError
from calibrant.recalibration import Temperature
from calibrant.sklearn import scorer


def drawn(k=2):
    return make_classification(300, 8, n_informative=4, n_classes=k, n_clusters_per_class=1, flip_y=0.2, random_state=0)


@pytest.mark.parametrize("k", [2, 3])
def test_scikit_learns_own_scores(k):
    X, y = drawn(k)
    found = cross_val_score(GaussianNB(), X, y, cv=3, scoring=scorer(LogLoss()))
    assert found == pytest.approx(cross_val_score(GaussianNB(), X, y, cv=3, scoring="neg_log_loss"), rel=1e-9)
    model = GaussianNB().fit(X, y)
    p = model.predict_proba(X)  # since 1.7 the function takes several classes, too
    expected = brier_score_loss(y, p[:, 1]) if k == 2 else ((p - np.eye(k)[y]) ** 2).sum(axis=1).mean()
    assert scorer(Brier())(model, X, y) == pytest.approx(-expected, rel=1e-12)


def test_larger_is_better_unless_the_sign_is_kept():
    X, y = drawn()
    model = GaussianNB().fit(X, y)
    assert scorer(ECE())(model, X, y) == -ECE()(y, model.predict_proba(X)).value < 0
    assert scorer(ECE(), greater_is_better=True)(model, X, y) == ECE()(y, model.predict_proba(X)).value


@pytest.mark.parametrize("names", [np.array(["b", "a", "c"]), np.array([10, 5, 7]), np.array([2.0, 1.0, 3.0])])
@pytest.mark.parametrize("k", [2, 3])
def test_labels_of_any_kind(names, k):
    X, y = drawn(k)
    names = np.sort(names[:k])
    expected = scorer(SKCE())(GaussianNB().fit(X, y), X, y)
    assert scorer(SKCE())(GaussianNB().fit(X, names[y]), X, names[y]) == pytest.approx(expected, rel=1e-12)


def test_several_scores_and_a_search():
    X, y = drawn()
    scores = {"ece": scorer(ECE()), "skce": scorer(SKCE()), "var": scorer(Variational(recalibrator=Temperature()))}
    found = cross_validate(GaussianNB(), X, np.array(["no", "yes"])[y], cv=3, scoring=scores)
    p = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")
    assert set(found) >= {"test_ece", "test_skce", "test_var"}
    assert found["test_ece"].mean() == pytest.approx(-ECE()(y, p).value, abs=0.05)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=scores, refit="skce", cv=3).fit(X, y)
    assert search.best_params_ == {"C": 1.0}


def test_weights():
    X, y = drawn()
    w = np.arange(300) % 3
    model = GaussianNB().fit(X, y)
    expected = log_loss(y, model.predict_proba(X), sample_weight=w)
    assert scorer(LogLoss())(model, X, y, sample_weight=w) == pytest.approx(-expected, rel=1e-9)


def test_a_class_that_the_model_has_not_seen_was_impossible():
    X, y = drawn(3)
    model = GaussianNB().fit(X[y != 1], y[y != 1])
    assert scorer(LogLoss())(model, X, y) == -np.inf
    p = np.insert(model.predict_proba(X), 1, 0, axis=1)
    assert scorer(Brier())(model, X, y) == pytest.approx(-Brier()(y, p).value, rel=1e-12)


def test_regressors_with_a_spread():
    X, y = make_regression(80, 3, noise=5.0, random_state=0)
    for model in (BayesianRidge(), GaussianProcessRegressor(alpha=1.0, normalize_y=True)):
        model.fit(X, y)
        expected = LogLoss()(y, Normal(*model.predict(X, return_std=True))).value
        assert scorer(LogLoss())(model, X, y) == -expected
    assert cross_val_score(BayesianRidge(), X, y, scoring=scorer(SKCE())).shape == (5,)


class Wide(RegressorMixin, BaseEstimator):
    """A family of one's own choice."""

    def fit(self, X, y):
        return self

    def predict_dist(self, X):
        return Laplace(np.zeros(len(X)), 3.0)


def test_regressors_with_distributions():
    X, y = make_regression(50, 3, random_state=0)
    assert scorer(LogLoss())(Wide(), X, y) == -LogLoss()(y, Laplace(np.zeros(50), 3.0)).value


def test_it_travels_to_other_processes():
    one = scorer(ECE())
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == f"scorer({ECE()!r}, greater_is_better=False)"


def test_bad_input():
    X, y = drawn()
    with pytest.raises(InputError, match=r"estimator must be an estimator such as ECE\(\); got 'ece'"):
        scorer("ece")
    with pytest.raises(InputError, match="RidgeClassifier has no predict_proba: wrap it in RecalibratedClassifier"):
        scorer(ECE())(RidgeClassifier().fit(X, y), X, y)
    with pytest.raises(InputError, match="LinearRegression predicts numbers without a spread: wrap it in Recalibrated"):
        scorer(SKCE())(LinearRegression().fit(X, y), X, y)
