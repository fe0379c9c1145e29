import json

import numpy as np
import pytest

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.lab import Tempered
from calibrant.recalibration import NadarayaWatson
from calibrant.recalibration.base import in_rows
from calibrant.recalibration.maps import Map
from calibrant.recalibration.nonparametric import nadaraya_watson
from calibrant.recalibration.nonparametric.nadaraya_watson import PRIORS, _left_out


@pytest.fixture(params=[2, 4])
def rows(request, rng):
    y, predictions = Tempered(request.param, 2.0).draw(200, rng)
    return y, predictions.matrix


def by_hand(y, p, w, h, prior, at):
    """Row by row, from the definition."""
    found = []
    for q in at:
        total = prior * q
        for p_i, y_i, w_i in zip(p, y, w, strict=True):
            total = total + w_i * np.exp(-((q - p_i) ** 2).sum() / (2 * h**2)) * np.eye(len(q))[y_i]
        found.append(total / total.sum())
    return np.array(found)


def left_out_loss(y, p, h, prior):
    n, k = p.shape
    loss = 0.0
    for i in range(n):
        rest = np.arange(n) != i
        q = by_hand(y[rest], p[rest], np.ones(n - 1), h, prior, p[i : i + 1])[0]
        loss -= np.log((n * q[y[i]] + 1 / k) / (n + 1)) / n
    return loss


@pytest.mark.parametrize("h", [0.02, 0.3])
@pytest.mark.parametrize("prior", [1.0, 5.0])
def test_local_frequencies_by_hand(rows, h, prior, rng):
    y, p = rows
    w = rng.integers(1, 4, len(y))
    at = rng.dirichlet(np.ones(p.shape[1]), 20)
    fitted = NadarayaWatson(h, prior).fit(y, p, sample_weight=w, folds=0)
    assert fitted(at) == pytest.approx(by_hand(y, p, in_rows(w, len(y)), h, prior, at), abs=1e-10)


@pytest.mark.parametrize("k", [2, 3])
def test_leave_one_out_losses_by_hand(k, rng):
    y, predictions = Tempered(k, 2.0).draw(40, rng)
    p = predictions.matrix
    found = _left_out(p, y, np.ones(40))(np.log(0.3), np.array([1.0, 4.0]))
    assert found == pytest.approx([left_out_loss(y, p, 0.3, c) for c in (1.0, 4.0)], abs=1e-10)


def test_equal_predictions_are_near_at_any_bandwidth(rng):
    p = rng.dirichlet(np.ones(7), 100)
    fitted = NadarayaWatson(1e-10, 1.0).fit(np.zeros(100, int), p, folds=0)
    assert fitted(p) == pytest.approx((p + np.eye(7)[0]) / 2)


def test_the_bandwidth_of_least_leave_one_out_loss(rng):
    y, predictions = Tempered(3, 2.0).draw(60, rng)
    p = predictions.matrix
    chosen = NadarayaWatson(prior=3.0).fit(y, p, folds=0).map.bandwidth
    least = left_out_loss(y, p, chosen, 3.0)
    assert all(least <= left_out_loss(y, p, h, 3.0) + 1e-4 for h in np.geomspace(0.01, 2, 15))


def test_the_prior_of_least_leave_one_out_loss(rng):
    y, predictions = Tempered(3, 2.0).draw(60, rng)
    p = predictions.matrix
    chosen = NadarayaWatson(0.2).fit(y, p, folds=0).map
    assert chosen.bandwidth == 0.2
    assert chosen.prior == min(PRIORS, key=lambda c: left_out_loss(y, p, 0.2, c))


@pytest.mark.parametrize("k", [2, 3, 10])
def test_it_mends_a_model_that_is_too_sure(k, rng):
    fitted = NadarayaWatson().fit(*Tempered(k, 2.5).draw(1_000, rng))
    for score in fitted.scores.rows():
        assert score["change"] < -3 * score["error"]


def test_where_no_row_is_near_predictions_stay(rng):
    p = rng.dirichlet(np.ones(3), 50) * 0.1 + [0.9, 0, 0]
    fitted = NadarayaWatson(0.01, 1.0).fit(np.zeros(50, int), p, folds=0)
    at = np.array([[0, 1, 0], [0.1, 0.3, 0.6]])
    np.testing.assert_array_equal(fitted(at), at)


def test_names_of_classes_and_order_of_rows_do_not_matter(rng):
    y, predictions = Tempered(4, 2.0).draw(300, rng)
    p, order, names = predictions.matrix, rng.permutation(300), rng.permutation(4)
    one = NadarayaWatson().fit(y, p, folds=0)
    other = NadarayaWatson().fit(np.argsort(names)[y[order]], p[order][:, names], folds=0)
    assert other(p[:, names]) == pytest.approx(one(p)[:, names], abs=1e-6)


def test_rows_beyond_the_bound_are_thinned(rng):
    y, p = Tempered(3, 2.0).draw(3_000, rng)
    full, thin = NadarayaWatson(0.1).fit(y, p, folds=0), NadarayaWatson(0.1, most_rows=1_000).fit(y, p, folds=0)
    assert len(thin.map.rows) == 1_000
    assert thin.notes == ("the map holds 1,000 of 3,000 rows",)
    gap = np.abs(thin(p).matrix - full(p).matrix)
    assert gap.mean() < 0.03
    counts = [np.bincount(part.map.targets) / len(part.map.targets) for part in (full, thin)]
    assert counts[0] == pytest.approx(counts[1], abs=0.05)


def test_parts_of_the_rows_make_the_whole(rows, monkeypatch):
    y, p = rows
    fitted = NadarayaWatson(0.1).fit(y, p, folds=0)
    expected = fitted(p)
    monkeypatch.setattr(nadaraya_watson, "CELLS", 7 * len(p))
    assert fitted(p) == pytest.approx(expected, abs=1e-14)


def test_json_keeps_every_digit(rows):
    fitted = NadarayaWatson().fit(*rows, folds=0)
    again = Map.from_dict(json.loads(json.dumps(fitted.map.to_dict())))
    np.testing.assert_array_equal(again(rows[1]), fitted(rows[1]))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("bandwidth", -1.0, "bandwidth must be a positive number"),
        ("rows", [[0.5, 0.5]], "rows must be"),
        ("targets", [9] * 200, "targets class numbers"),
        ("weights", [-1.0] * 200, "weights at least 0"),
        ("n_classes", 7, "rows must be"),
    ],
)
def test_corrupted_numbers_are_refused(rows, part, value, message):
    data = NadarayaWatson(0.1).fit(*rows, folds=0).map.to_dict()
    with pytest.raises(InputError, match=message):
        Map.from_dict({**data, part: value})


@pytest.mark.parametrize("bandwidth", ["loo", 0.2])
def test_constant_predictions_become_frequencies(bandwidth):
    y, p = np.array([0, 1, 1, 2] * 250), np.tile([0.2, 0.3, 0.5], (1000, 1))
    assert NadarayaWatson(bandwidth, 1.0).fit(y, p, folds=0)(p[:1])[0] == pytest.approx([0.25, 0.5, 0.25], abs=1e-3)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1, 1, 1], [0.2, 0.5, 0.9]),
        ([0, 1], [0.3, 0.3]),
        ([0, 1], [0.0, 1.0]),
        ([1, 0], [0.0, 1.0]),
        ([0], [0.5]),
    ],
)
def test_few_rows_and_certainty(y, p):
    found = NadarayaWatson().fit(y, p, folds=0)([[1, 0], [0, 1], [0.5, 0.5]])
    assert np.all((found >= 0) & (found <= 1))
    assert found.sum(axis=1) == pytest.approx(1)


def test_float32_is_as_good(rows):
    y, p = rows
    single = NadarayaWatson(0.1).fit(y, p.astype(np.float32), folds=0)(p.astype(np.float32))
    assert single == pytest.approx(NadarayaWatson(0.1).fit(y, p, folds=0)(p), abs=1e-5)


def test_a_missing_class_and_many_classes(rng):
    p = rng.dirichlet(np.full(1000, 0.01), 100)
    found = NadarayaWatson().fit(rng.integers(0, 500, 100), p)
    assert np.isfinite(found.scores["after"][1])
    assert found(p).sum(axis=1) == pytest.approx(1)


def test_bad_input(rows, rng):
    with pytest.raises(InputError, match="bandwidth must be a positive number, or 'loo' to have it chosen; got 'cv'"):
        NadarayaWatson("cv")
    with pytest.raises(InputError, match="prior must be a positive number, or 'loo' to have it chosen; got 0"):
        NadarayaWatson(prior=0)
    with pytest.raises(InputError, match="most_rows must be a whole number of at least 1; got 0"):
        NadarayaWatson(most_rows=0)
    with pytest.raises(InputError, match="NadarayaWatson maps class probabilities; got Normal predictions"):
        NadarayaWatson().fit([0.5, 1.0], Normal([0.0, 1.0], 1.0))
    y, p = rows
    with pytest.raises(InputError, match=f"fitted on {p.shape[1]} classes and y_pred has 5"):
        NadarayaWatson(0.1).fit(y, p, folds=0)(Categorical(rng.dirichlet(np.ones(5), 3)))
