import json

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import SplineScaling
from calibrant.recalibration.maps import Map
from calibrant.recalibration.nonparametric.spline import SplineMap


def drawn(rng, curve, n=4000):
    f = rng.beta(0.5, 0.5, n)
    return rng.binomial(1, curve(f)), f


def two(f):
    return np.stack([1 - f, f], axis=1)


CURVES = {
    "too sure": lambda f: expit(0.4 * logit(f) + 0.3),
    "not sure enough": lambda f: expit(4 * logit(f) + 1),
    "bent twice": lambda f: expit(logit(f) + np.sin(2 * np.pi * f)),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_curve_that_made_the_labels(name, rng):
    """Within four of its own errors in the middle, and on average within two."""
    y, f = drawn(rng, CURVES[name])
    found = SplineScaling().fit(y, f)
    at = np.linspace(0.05, 0.95, 19)
    features = [x for _, x in found.map._chunks(two(at))]
    error = np.sqrt(np.einsum("nm,mk,nk->n", features[0], found.map.covariance, features[0]))
    off = (logit(found(at)) - logit(CURVES[name](at))) / error
    assert np.abs(off).max() < 4
    assert np.sqrt((off**2).mean()) < 2
    assert found.scores["change"][0] < -3 * found.scores["error"][0]
    assert found.is_converged


def test_calibrated_predictions_stay_where_they_are(rng):
    """A free mean of 4,000 rows errs by .008; the identity among the fits keeps the curve closer than that."""
    y, f = drawn(rng, lambda f: f)
    found = SplineScaling().fit(y, f)
    assert np.abs(found(f) - f).mean() < 0.008
    assert np.abs(found.map.direction(two(f))).mean() < 0.8


def test_a_direction_is_the_sign_of_the_change_made_softer(rng):
    y, f = drawn(rng, CURVES["too sure"])
    found = SplineScaling().fit(y, f, folds=0).map
    direction = found.direction(two(f))
    inside = np.abs(f - 0.5) < 0.4999
    assert (np.abs(direction) <= 1).all()
    assert (np.sign(direction) == np.sign(found(f) - f))[inside].all()
    assert (found.certainty(two(f)) == np.abs(direction)).all()
    assert direction[(f > 0.05) & (f < 0.15)].min() > 0.99
    assert direction[(f > 0.9) & (f < 0.95)].max() < -0.99


def test_a_soft_direction_finds_no_more_than_there_is(rng):
    """Calibrated data: the mean of direction (y - f) on new rows is 0 within its error, which is smaller than a sign's."""
    soft, hard = [], []
    for _ in range(40):
        y, f = drawn(rng, lambda f: f, 300)
        found = SplineScaling().fit(y, f, folds=0).map
        y, f = drawn(rng, lambda f: f, 300)
        soft.append((found.direction(two(f)) * (y - f)).mean())
        hard.append((np.sign(found(f) - f) * (y - f)).mean())
    assert abs(np.mean(soft)) < 3 * np.std(soft) / np.sqrt(40)
    assert np.std(soft) < 0.7 * np.std(hard)


def test_swapped_classes_get_the_swapped_answer(rng):
    y, f = drawn(rng, CURVES["bent twice"], 500)
    one, other = SplineScaling().fit(y, f, folds=0), SplineScaling().fit(1 - y, 1 - f, folds=0)
    assert other(1 - f) == pytest.approx(1 - one(f), abs=1e-9)


def test_exact_zeros_and_ones_are_put_right(rng):
    """A model that is always certain and wrong in a fifth of the rows; the error of a fifth of 1,000 rows is .013."""
    f = rng.integers(2, size=2000).astype(float)
    y = np.where(rng.random(2000) < 0.2, 1 - f, f).astype(int)
    found = SplineScaling().fit(y, f)
    assert found([0.0, 1.0]) == pytest.approx([0.2, 0.8], abs=0.05)
    assert np.isfinite(found.scores["after"]).all()


def test_rows_told_apart_without_error(rng):
    f = rng.random(300)
    found = SplineScaling().fit((f > 0.3).astype(int), f)
    assert found.is_converged
    assert found([0.1, 0.6])[0] < 0.05
    assert found([0.1, 0.6])[1] > 0.95


def test_constant_predictions_become_the_frequency(rng):
    y = rng.binomial(1, 0.7, 2000)
    found = SplineScaling().fit(y, np.full(2000, 0.4))
    assert found([0.4]) == pytest.approx([y.mean()], abs=0.01)


def test_rows_in_another_order_change_nothing(rng):
    y, f = drawn(rng, CURVES["too sure"], 1000)
    f = f.round(2)
    order = rng.permutation(1000)
    one, other = SplineScaling().fit(y, f, folds=0), SplineScaling().fit(y[order], f[order], folds=0)
    assert other(f) == pytest.approx(one(f), abs=1e-10)


def test_of_weights_only_the_ratio_matters(rng):
    y, f = drawn(rng, CURVES["too sure"], 600)
    for w in (rng.random(600), rng.integers(1, 4, 600)):
        one, other = (SplineScaling().fit(y, f, sample_weight=c * w, folds=0) for c in (1.0, 0.3))
        assert other(f) == pytest.approx(one(f), abs=1e-9)


def test_heavy_rows_count_more(rng):
    f = np.full(1000, 0.5)
    y = np.repeat([0, 1], 500)
    found = SplineScaling().fit(y, f, sample_weight=np.where(y == 1, 3.0, 1.0), folds=0)
    assert found([0.5]) == pytest.approx([0.75], abs=0.01)


def test_many_rows_in_few_bins_lose_little(rng):
    y, f = drawn(rng, CURVES["bent twice"], 3000)
    fine, coarse = (SplineScaling(bins=bins).fit(y, f, folds=0)(f) for bins in (3000, 256))
    assert np.abs(fine - coarse).max() < 0.02


def test_it_comes_back_from_json_digit_by_digit(rng):
    y, f = drawn(rng, CURVES["too sure"], 300)
    found = SplineScaling().fit(y, f, folds=0).map
    again = Map.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again(f) == found(f)).all()
    assert (again.direction(two(f)) == found.direction(two(f))).all()


def test_more_rows_than_a_chunk(rng, monkeypatch):
    y, f = drawn(rng, CURVES["too sure"], 300)
    found = SplineScaling().fit(y, f, folds=0)
    whole, direction = found(f), found.map.direction(two(f))
    monkeypatch.setattr("calibrant.recalibration.nonparametric.spline.CHUNK", 7)
    assert found(f) == pytest.approx(whole, abs=1e-14)
    assert found.map.direction(two(f)) == pytest.approx(direction, abs=1e-12)


def test_what_it_cannot_take():
    with pytest.raises(InputError, match=r"two classes and y_pred has 3"):
        SplineScaling().fit([0, 1, 2], np.full((3, 3), 1 / 3), folds=0)
    with pytest.raises(InputError, match="maps class probabilities"):
        SplineScaling().fit([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
    with pytest.raises(InputError, match="bins"):
        SplineScaling(bins=1)
    with pytest.raises(InputError, match="floor below 1/2"):
        SplineMap(0.7, np.zeros(1), np.zeros(1), np.zeros(5), np.eye(5))
    with pytest.raises(InputError, match="two classes; got 3"):
        SplineMap(0.1, np.zeros(1), np.zeros(1), np.zeros(5), np.eye(5), 3)
