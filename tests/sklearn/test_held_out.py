import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.linear_model import LinearRegression
from sklearn.model_selection import TimeSeriesSplit

from calibrant._validate import InputError
from calibrant.sklearn.held_out import as_rows, features_of, held_out, pooled


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
