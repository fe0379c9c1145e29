import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from calibrant._validate import InputError
from calibrant.sklearn.outputs import (
    as_categorical,
    class_numbers,
    gives_spread,
    probabilities,
    response,
    spread,
)


def test_numbers_of_classes_in_any_order():
    classes = np.array(["c", "a", "b"])
    assert class_numbers(np.array(["a", "b", "c", "a"]), classes).tolist() == [1, 2, 0, 1]
    with pytest.raises(InputError, match=r"does not know: \['d', 'z'\]; it knows \['c', 'a', 'b'\]"):
        class_numbers(np.array(["z", "a", "d"]), classes)


def test_numeric_names_do_not_renumber_targets():
    predictions = as_categorical(np.array([[0.2, 0.8]]), np.array([1, 0]))
    assert predictions.as_targets(np.array([1])).tolist() == [1]


def test_columns_of_classes_that_a_model_has_not_seen(rng):
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "c", "a")
    classes = np.array(["a", "b", "c"])
    p = response(GaussianNB().fit(X, y), X, classes)
    assert np.all(p[:, 1] == 0)
    assert p.sum(axis=1) == pytest.approx(1)
    model = RidgeClassifier().fit(X, y)
    logits = response(model, X, classes)
    assert np.all(logits[:, 1] == -np.inf)
    assert probabilities(logits, 1.0)[:, 2] == pytest.approx(expit(model.decision_function(X)))


def test_the_spread_of_logits_by_hand():
    logits = np.array([[0.0, 2.0], [0.0, -4.0]])  # 1 and 2 about the mean
    assert spread(logits, None) == pytest.approx(np.sqrt((1 + 4) / 2))
    assert spread(logits, np.array([3.0, 1.0])) == pytest.approx(np.sqrt((3 * 1 + 4) / 4))
    assert spread(np.zeros((3, 4)), None) == 1.0


def test_who_tells_a_spread():
    assert gives_spread(BayesianRidge())
    assert gives_spread(FrozenEstimator(make_pipeline(BayesianRidge())))
    assert not gives_spread(make_pipeline(LinearRegression()))
