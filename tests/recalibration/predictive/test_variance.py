import json

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant import Ensemble, Laplace, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.recalibration import Temperature, VarianceScaling
from calibrant.recalibration.maps import Map
from calibrant.recalibration.predictive.variance import MIN_FACTOR


def covariances(rng, n, d):
    root = rng.normal(size=(n, d, d))
    return root @ np.transpose(root, (0, 2, 1)) + 0.1 * np.eye(d)


FAMILIES = {
    "normal": lambda rng, n: Normal(rng.normal(size=n), rng.uniform(0.5, 2, n)),
    "laplace": lambda rng, n: Laplace(rng.normal(size=n), rng.uniform(0.5, 2, n)),
    "scales": lambda rng, n: MultivariateNormal(rng.normal(size=(n, 3)), rng.uniform(0.5, 2, (n, 3))),
    "matrices": lambda rng, n: MultivariateNormal(rng.normal(size=(n, 2)), covariance=covariances(rng, n, 2)),
}


@pytest.fixture(params=FAMILIES)
def problem(request, rng):
    """Too sure by a factor of two, and too low by 0.7."""
    predictions = FAMILIES[request.param](rng, 300)
    loc = np.asarray(predictions.loc)
    return loc + 2 * (predictions.sample(rng, 1)[0] - loc) + 0.7, predictions


@pytest.mark.parametrize("bias", [False, True])
def test_no_other_numbers_are_likelier(problem, bias, rng):
    """A second route: a search over the factor and the shift, from a point that is off."""
    y, predictions = problem
    w = rng.random(300)
    fitted = VarianceScaling(bias).fit(y, predictions, sample_weight=w, folds=0).map

    def loss(x):
        map_ = Map.from_dict({**fitted.to_dict(), "factor": float(np.exp(x[0])), "shift": x[1:].tolist()})
        return -np.average(map_(predictions).log_prob(y), weights=w)

    best = np.r_[np.log(fitted.factor), fitted.shift]
    free = 1 + len(fitted.shift) * bias

    def over(x):
        return loss(np.r_[x, best[free:]])

    searched = minimize(
        over, best[:free] + 0.1, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000}
    )
    assert loss(best) <= searched.fun + 1e-10
    assert loss(best) == pytest.approx(searched.fun, abs=1e-6)


def test_without_a_shift_it_is_temperature_scaling(problem):
    y, predictions = problem
    temperature = Temperature().fit(y, predictions, folds=0).map.temperature
    expected = temperature if isinstance(predictions, Laplace) else temperature**0.5
    assert VarianceScaling().fit(y, predictions, folds=0).map.factor == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_it_mends_a_model_that_is_too_sure(problem, bias):
    scores = VarianceScaling(bias).fit(*problem).scores
    assert scores["change"][0] < -3 * scores["error"][0]


def test_a_shift_is_found_on_top(problem):
    y, predictions = problem
    plain, shifted = (VarianceScaling(bias).fit(y, predictions) for bias in (False, True))
    assert shifted.scores["after"][0] < plain.scores["after"][0]
    assert shifted.map.shift == pytest.approx(0.7, abs=0.4)


def test_numbers_by_hand():
    fitted = VarianceScaling().fit([3.0, -1.0], Normal([0.0, 0.0], [1.0, 0.5]), folds=0)
    assert fitted.map.factor == pytest.approx(np.sqrt((9 + 4) / 2))
    found = fitted(Normal([7.0], 2.0))
    assert (found.loc[0], found.scale[0]) == (7, pytest.approx(2 * np.sqrt(6.5)))
    both = VarianceScaling(bias=True).fit([3.0, -1.0], Normal([0.0, 0.0], [1.0, 0.5]), folds=0)
    assert both.map.shift == pytest.approx((3 - 4) / 5)


def test_the_median_of_two_is_halfway():
    assert VarianceScaling(bias=True).fit([1.0, 3.0], Laplace([0.0, 0.0], 1.0), folds=0).map.shift == pytest.approx(2)


@pytest.mark.parametrize("bias", [False, True])
def test_weights_equal_repetition(problem, bias, rng):
    y, predictions = problem
    rows = np.repeat(np.arange(300), times := rng.integers(0, 4, 300))
    weighted = VarianceScaling(bias).fit(y, predictions, sample_weight=times, folds=0).map
    repeated = VarianceScaling(bias).fit(y[rows], predictions[rows], folds=0).map
    assert weighted.factor == pytest.approx(repeated.factor)
    assert weighted.shift == pytest.approx(repeated.shift)


def test_json_keeps_every_digit(problem):
    y, predictions = problem
    fitted = VarianceScaling(bias=True).fit(y, predictions, folds=0)
    again = Map.from_dict(json.loads(json.dumps(fitted.map.to_dict())))
    np.testing.assert_array_equal(again(predictions).log_prob(y), fitted(predictions).log_prob(y))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("factor", 0.0, "factor must be a positive number; got 0"),
        ("shift", [1.0, 2.0], "shift must be one finite number a dimension"),
        ("shift", [float("nan")], "shift must be one finite number a dimension"),
        ("family", "Gamma", "family must be one of Normal, Laplace, MultivariateNormal; got 'Gamma'"),
    ],
)
def test_corrupted_numbers_are_refused(part, value, message):
    data = VarianceScaling().fit([1.0, 2.0], Normal([0.0, 0.0], 1.0), folds=0).map.to_dict()
    with pytest.raises(InputError, match=message):
        Map.from_dict({**data, part: value})


@pytest.mark.parametrize("family", [Normal, Laplace])
@pytest.mark.parametrize("bias", [False, True])
def test_targets_that_equal_the_means(family, bias):
    fitted = VarianceScaling(bias).fit([1.0, 2.0], family([1.0, 2.0], 1.0), folds=0)
    assert fitted.map.factor == MIN_FACTOR
    assert "targets equal the means" in fitted.notes[0]


def test_other_libraries_and_precisions_are_kept(xp, rng):
    loc = xp.asarray(rng.normal(size=50).astype(np.float32))
    found = VarianceScaling(bias=True).fit(rng.normal(size=50), Normal(loc, 2.0), folds=0)(Normal(loc, 2.0))
    assert type(found.loc) is type(loc)
    assert found.loc.dtype == loc.dtype == found.scale.dtype


def test_bad_input(rng):
    with pytest.raises(InputError, match="VarianceScaling takes Normal, Laplace, MultivariateNormal; got Ensemble"):
        VarianceScaling().fit([0.0, 1.0], Ensemble([[0.0, 1.0], [1.0, 2.0]]))
    fitted = VarianceScaling().fit([1.0, 2.0], Normal([0.0, 0.0], 1.0), folds=0)
    with pytest.raises(InputError, match="fitted on Normal predictions; got Laplace"):
        fitted(Laplace([0.0], 1.0))
    vectors = VarianceScaling().fit(rng.normal(size=(4, 2)), MultivariateNormal(np.zeros((4, 2)), 1.0), folds=0)
    with pytest.raises(InputError, match="fitted in 2 dimensions and y_pred has 3"):
        vectors(MultivariateNormal(np.zeros((4, 3)), 1.0))
