import json

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.recalibration import SharedSpline, Temperature
from calibrant.recalibration.maps import Map
from calibrant.recalibration.nonparametric.shared_spline import SMOOTHNESS, SharedMap, _Problem
from calibrant.recalibration.nonparametric.spline import roughness


def drawn(rng, n, k, curve):
    p = rng.dirichlet(np.full(k, 0.5), n)
    truth = softmax(curve(np.log(p)), axis=1)
    return (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1), p, truth


def problem(rng, n=60, k=3, splines=5):
    logs = np.log(rng.dirichlet(np.ones(k), n))
    places = np.rint(np.exp(logs) * 1023).astype(np.int32)
    w = 0.5 + rng.random(n)
    return _Problem(logs, places, rng.integers(k, size=n), w, splines)


@pytest.mark.parametrize(("k", "slope"), [(2, 0.5), (3, 0.3), (10, 2.0), (100, 0.7)])
def test_a_temperature_is_found(k, slope, rng):
    """As close to the truth as a temperature alone, but for what a dozen more coefficients cost."""
    y, p, truth = drawn(rng, 2000, k, lambda z: slope * z)
    found = SharedSpline().fit(y, p)
    alone = Temperature().fit(y, p, folds=0)
    loss = -(truth * np.log(found(p))).sum(axis=1).mean() + (truth * np.log(truth + 1e-300)).sum(axis=1).mean()
    least = -(truth * np.log(alone(p))).sum(axis=1).mean() + (truth * np.log(truth + 1e-300)).sum(axis=1).mean()
    assert 0 <= loss < least + 6 / 2000
    assert found.scores["change"][0] < -3 * found.scores["error"][0]
    assert found.is_converged


def test_a_bend_that_no_temperature_has(rng):
    """Small probabilities are far too small, large ones are right."""
    y, p, truth = drawn(rng, 4000, 4, lambda z: np.maximum(z, np.log(0.05)))
    found, alone = SharedSpline().fit(y, p, folds=0)(p), Temperature().fit(y, p, folds=0)(p)
    assert np.abs(found - truth).mean() < 0.5 * np.abs(alone - truth).mean()


def test_calibrated_predictions_stay_where_they_are(rng):
    y, p, _ = drawn(rng, 4000, 4, lambda z: z)
    assert np.abs(SharedSpline().fit(y, p, folds=0)(p) - p).mean() < 0.005


def test_the_gradient_is_gone_at_the_minimum(rng):
    data = problem(rng)
    for smoothness in SMOOTHNESS[1:]:
        fit = data.minimum(np.zeros(6), smoothness)
        slope, _ = data.derivatives(fit.coefficients)
        penalised = slope + np.r_[1e-2 * fit.coefficients[0], smoothness * roughness(5) @ fit.coefficients[1:]]
        assert fit.is_converged
        assert np.abs(penalised).max() < 1e-3


def test_derivatives_are_those_of_the_loss(rng):
    data = problem(rng)
    c = rng.normal(size=6)
    slope, curvature = data.derivatives(c)
    for i in range(6):
        step = np.zeros(6)
        step[i] = 1e-5
        assert slope[i] == pytest.approx((data.loss(c + step) - data.loss(c - step)) / 2e-5, abs=1e-5)
        difference = (data.derivatives(c + step)[0] - data.derivatives(c - step)[0]) / 2e-5
        assert curvature[i] == pytest.approx(difference, abs=1e-5)


def test_leaving_rows_out_agrees_with_fitting_without_them(rng):
    data = problem(rng)
    fit = data.minimum(np.zeros(6), 10.0)
    expected = 0.0
    for i in range(60):
        rest = np.arange(60) != i
        without = _Problem(data.logs[rest], data.places[rest], data.targets[rest], data.w[rest], 5)
        logits = data.predictor(without.minimum(fit.coefficients, 10.0).coefficients)[i]
        expected += data.w[i] * log_softmax(logits)[data.targets[i]]
    assert fit.left_out == pytest.approx(expected, abs=0.1)
    assert -data.loss(fit.coefficients) - expected > 0.5


def test_variances_are_those_of_fits_to_other_labels(rng):
    """A temperature's spread over 60 sets of labels, against what one fit says of itself."""
    p = rng.dirichlet(np.full(3, 0.5), 1000)
    truth = softmax(0.4 * np.log(p), axis=1)
    maps = []
    for _ in range(60):
        y = (rng.random((1000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        maps.append(SharedSpline().find(y, Categorical(p), None).map)
    spread = np.var([one.probabilities(p) for one in maps], axis=0).sum(axis=1).mean()
    assert 0.5 < np.mean([one.variance(p).mean() for one in maps]) / spread < 3


def test_permuted_classes_get_the_permuted_answer(rng):
    y, p, _ = drawn(rng, 500, 5, lambda z: 0.5 * z)
    order = rng.permutation(5)
    one, other = SharedSpline().fit(y, p, folds=0), SharedSpline().fit(np.argsort(order)[y], p[:, order], folds=0)
    assert other(p[:, order]) == pytest.approx(one(p)[:, order], abs=1e-8)


def test_of_weights_only_the_ratio_matters(rng):
    y, p, _ = drawn(rng, 400, 3, lambda z: 0.5 * z)
    for w in (rng.random(400), rng.integers(1, 4, 400)):
        one, other = (SharedSpline().fit(y, p, sample_weight=c * w, folds=0) for c in (1.0, 0.3))
        assert other(p) == pytest.approx(one(p), abs=1e-8)


def test_it_comes_back_from_json_digit_by_digit(rng):
    y, p, _ = drawn(rng, 200, 3, lambda z: 0.5 * z)
    found = SharedSpline().fit(y, p, folds=0).map
    again = Map.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again(p) == found(p)).all()
    assert (again.variance(p) == found.variance(p)).all()


def test_more_features_than_a_chunk(rng, monkeypatch):
    y, p, _ = drawn(rng, 100, 3, lambda z: 0.5 * z)
    whole = SharedSpline().fit(y, p, folds=0)
    monkeypatch.setattr("calibrant.recalibration.nonparametric.shared_spline.CHUNK", 200)
    parts = SharedSpline().fit(y, p, folds=0)
    assert parts(p) == pytest.approx(whole(p), abs=1e-10)


def test_what_it_cannot_take():
    with pytest.raises(InputError, match="maps class probabilities"):
        SharedSpline().fit([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
    with pytest.raises(InputError, match="splines"):
        SharedSpline(splines=3)
    with pytest.raises(InputError, match="covariance of coefficients"):
        SharedMap(0.1, np.zeros(1), np.zeros(1), np.zeros(5), np.eye(4), 3)
