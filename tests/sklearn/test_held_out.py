import numpy as np
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from calibrant._validate import InputError
from calibrant.recalibration import Platt, VarianceScaling
from calibrant.sklearn import RecalibratedClassifier, RecalibratedRegressor
from calibrant.sklearn.held_out import (
    as_categorical,
    as_rows,
    class_numbers,
    features_of,
    gives_spread,
    held_out,
    pooled,
    probabilities,
    response,
    spread,
)

pytest.importorskip("sklearn")


def predict(model, X):
    return model.predict(X)[:, None]


def parts_of(rows, cv):
    return held_out(LinearRegression(), rows, predict, cv=cv, n_jobs=None, is_classifier=False)


def test_each_row_is_predicted_by_a_model_that_has_not_seen_it(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    rows, values = pooled(parts_of(as_rows(X, y, None), 3))
    assert rows.tolist() == list(range(30))
    without = LinearRegression().fit(X[10:], y[10:])
    assert values[:10, 0] == pytest.approx(without.predict(X[:10]))


def test_rows_before_the_first_split_of_a_series_are_never_held_out(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    rows, _ = pooled(parts_of(as_rows(X, y, None), TimeSeriesSplit(2)))
    assert rows.tolist() == list(range(10, 30))


def test_given_splits_keep_their_row_numbers_when_rows_without_weight_go(rng):
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    w = np.ones(12)
    w[[0, 5, 11]] = 0
    rows = as_rows(X, y, w)
    assert rows.numbers.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    first, second = np.arange(6), np.arange(6, 12)
    parts = parts_of(rows, [(first, second), (second, first)])
    assert [rows.numbers[part.rows].tolist() for part in parts] == [[6, 7, 8, 9, 10], [1, 2, 3, 4]]
    expected = LinearRegression().fit(X[[1, 2, 3, 4]], y[[1, 2, 3, 4]]).coef_
    assert parts[0].model.coef_ == pytest.approx(expected)


def test_features_are_told_where_there_are_any():
    assert features_of(LinearRegression().fit([[1.0, 2.0], [3.0, 5.0]], [0, 1])) == {"n_features_in_": 2}
    assert features_of(object()) == {}


def test_weights_may_be_a_list():
    assert as_rows(np.zeros((2, 1)), np.zeros(2), [1, 2]).weights.tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="sample_weight is zero everywhere"):
        as_rows(np.zeros((2, 1)), np.zeros(2), [0, 0])


pytest.importorskip("sklearn")


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


@pytest.mark.filterwarnings("ignore::calibrant.sklearn.held_out.RecalibrationWarning")
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_groups_are_held_out_whole(rng, kind):
    groups, X = np.repeat([f"g{i}" for i in range(30)], 4), rng.normal(size=(120, 2))
    if kind == "classifier":
        model = RecalibratedClassifier(LogisticRegression(), Platt(), cv=3)
        model.fit(X, (rng.random(120) < 0.5) * 1, groups=groups)
    else:
        model = RecalibratedRegressor(LinearRegression(), VarianceScaling(), cv=3)
        model.fit(X, rng.normal(size=120), groups=groups)
    for part in model.recalibration_.held_out:
        inside = np.unique(groups[part.rows])
        assert np.isin(groups, inside).sum() == len(part.rows)


def test_folds_that_split_groups_are_refused(rng):
    X, y, groups = rng.normal(size=(40, 2)), np.arange(40) % 2, np.arange(40) // 4
    with pytest.raises(
        InputError, match=r"cv splits 1 group, whose rows must be held out together: take a cv that keeps groups whole"
    ):
        RecalibratedClassifier(LogisticRegression(), cv=KFold(3)).fit(X, y, groups=groups)
    with pytest.raises(InputError, match="groups has 39 rows and y has 40"):
        RecalibratedClassifier(LogisticRegression()).fit(X, y, groups=groups[1:])
