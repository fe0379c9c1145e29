import json

import numpy as np
import pytest
from scipy.special import ndtr

from calibrant import Categorical, Ensemble, Laplace, Mixture, Normal, Poisson
from calibrant._validate import InputError
from calibrant.recalibration import QuantileRecalibration, VarianceScaling
from calibrant.recalibration.maps import Map

LEVELS = np.array([0.01, 0.1, 0.5, 0.9, 0.99])


def skewed(rng, n):
    """Residuals of a gamma distribution, where the model has normal ones."""
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc + scale * (rng.gamma(2, 1, n) - 2), Normal(loc, scale)


def test_a_skewed_truth_is_found(rng):
    fitted = QuantileRecalibration().fit(*skewed(rng, 4_000))
    assert fitted.scores["change"][0] < -3 * fitted.scores["error"][0]
    y, predictions = skewed(rng, 4_000)
    after = fitted(predictions).cdf(y)
    for level in LEVELS:
        assert (after <= level).mean() == pytest.approx(level, abs=5 * np.sqrt(2 * level * (1 - level) / 4_000))


def test_a_factor_costs_little_more_than_if_it_were_known(rng):
    """The price of about 16 points instead of one number is 16 / 2n a row, here 0.002; twice that is allowed."""
    y, predictions = rng.normal(0, 3, 4_000), Normal(np.zeros(4_000), 1.0)
    many, one = (r.fit(y, predictions).scores["after"][0] for r in (QuantileRecalibration(), VarianceScaling()))
    assert many < one + 0.004


@pytest.mark.parametrize("n", [30, 400])
def test_the_distribution_function_of_levels_at_the_points(n, rng):
    """A second route: count the targets below."""
    y, predictions = skewed(rng, n)
    found = QuantileRecalibration().fit(y, predictions, folds=0).map
    u = predictions.cdf(y)
    for z, value in zip(found.scores, found.values, strict=True):
        level = ndtr(z)
        below = (u < level - 1e-12).sum() + 0.5 * (np.abs(u - level) <= 1e-12).sum()
        assert ndtr(value) == pytest.approx((below + level) / (n + 1))


def test_no_more_than_ten_rows_lie_beyond_the_last_point(rng):
    y, predictions = skewed(rng, 5_000)
    found = QuantileRecalibration().fit(y, predictions, folds=0).map
    assert 10 <= (predictions.cdf(y) > ndtr(found.scores[-1])).sum() <= 20
    assert 10 <= (predictions.cdf(y) < ndtr(found.scores[0])).sum() <= 20


@pytest.mark.parametrize("family", ["laplace", "mixture"])
def test_other_families(family, rng):
    n = 1_000
    if family == "laplace":
        predictions = Laplace(rng.normal(size=n), 1.0)
    else:
        predictions = Mixture([Normal.example(rng, n), Normal.example(rng, n)])
    loc = predictions.quantile(np.array([0.5]))[:, 0]
    fitted = QuantileRecalibration().fit(loc + 2 * (predictions.sample(rng, 1)[0] - loc), predictions)
    assert fitted.scores["change"][0] < -3 * fitted.scores["error"][0]


def test_a_calibrated_ensemble_stays(rng):
    """Also with few members, each of which holds a quarter before and after."""
    members = Ensemble(rng.normal(size=(20_000, 4)))
    fitted = QuantileRecalibration().fit(rng.normal(size=20_000), members, folds=0)
    found = fitted(Ensemble([[1.0, 2.0, 3.0, 4.0]]))
    assert found.cdf(np.array([[1.0], [2.0], [3.0]]))[:, 0] == pytest.approx([0.25, 0.5, 0.75], abs=0.02)


def test_a_calibrated_model_is_hardly_changed(rng):
    predictions = Normal.example(rng, 2_000)
    fitted = QuantileRecalibration().fit(predictions.sample(rng, 1)[0], predictions)
    assert fitted(Normal([0.0], 1.0)).cdf(np.linspace(-3, 3, 50)[:, None])[:, 0] == pytest.approx(
        ndtr(np.linspace(-3, 3, 50)), abs=1.63 / np.sqrt(2_000)
    )  # the distribution of Kolmogorov, at 1 %
    assert abs(fitted.scores["change"][0]) < 0.02


def test_json_keeps_every_digit(rng):
    y, predictions = skewed(rng, 300)
    fitted = QuantileRecalibration().fit(y, predictions, folds=0)
    again = Map.from_dict(json.loads(json.dumps(fitted.map.to_dict())))
    np.testing.assert_array_equal(again(predictions).log_prob(y), fitted(predictions).log_prob(y))


def test_float32_is_as_good(rng):
    y, predictions = skewed(rng, 300)
    single = Normal(predictions.loc.astype(np.float32), predictions.scale.astype(np.float32))
    expected = QuantileRecalibration().fit(y, predictions, folds=0).map
    assert QuantileRecalibration().fit(y.astype(np.float32), single, folds=0).map.values == pytest.approx(
        expected.values, abs=0.02
    )


@pytest.mark.parametrize("y", [[1.0, 2.0], [1.0, 1.0], [-1e3, 1e3], [0.0], [0.0, 0.0]])
def test_few_rows(y):
    fitted = QuantileRecalibration().fit(y, Normal(np.zeros(len(y)), 1.0), folds=0)
    found = fitted(Normal([0.0], 1.0))
    assert np.all(np.isfinite(found.log_prob(np.array([-3.0, 0.0, 3.0])[:, None])))
    assert np.all(np.diff(found.quantile(LEVELS)) > 0)


def test_points_that_differ_by_rounding_are_one():
    y = np.repeat([1.0, 1.0 + 1e-12, 1.0 + 2e-12], 10)
    assert len(QuantileRecalibration().fit(y, Normal(np.zeros(30), 1.0), folds=0).map.scores) == 1


def test_targets_beyond_all_levels_are_told(rng):
    y = rng.normal(0, 100, 500)
    fitted = QuantileRecalibration().fit(y, Normal(np.zeros(500), 1.0), folds=0)
    assert "of targets have a PIT value of 0 or 1: try VarianceScaling first" in fitted.notes[0]


def test_corrupted_numbers_are_refused(rng):
    data = QuantileRecalibration().fit(*skewed(rng, 100), folds=0).map.to_dict()
    with pytest.raises(InputError, match="values must be finite numbers that increase"):
        Map.from_dict({**data, "values": data["values"][::-1]})


def test_bad_input(rng):
    with pytest.raises(InputError, match="QuantileRecalibration takes predictions of numbers .* got Categorical"):
        QuantileRecalibration().fit([0, 1], Categorical([0.2, 0.7]))
    fitted = QuantileRecalibration().fit(*skewed(rng, 100), folds=0)
    with pytest.raises(InputError, match="fitted on Normal predictions; got Laplace"):
        fitted(Laplace([0.0], 1.0))


def test_ensembles_are_judged_by_their_ranked_score(rng):
    fitted = QuantileRecalibration().fit(rng.normal(size=20), Ensemble(rng.normal(size=(20, 3))))
    assert fitted.scores["score"].tolist() == ["CRPS"]


def test_calibrated_counts_are_left_as_they_are():
    rng = np.random.default_rng(2)
    rates = rng.uniform(0.3, 3.0, 20_000)  # few values, each with a probability of its own
    found = QuantileRecalibration().fit(rng.poisson(rates), Poisson(rates), folds=0)(Poisson([0.5, 2.0]))
    for y in range(5):
        at = np.full(2, y)
        assert found.cdf(at) == pytest.approx(Poisson([0.5, 2.0]).cdf(at), abs=0.015)


def test_counts_that_are_too_low_are_put_right():
    rng = np.random.default_rng(3)
    y = rng.poisson(3.0, 20_000)
    found = QuantileRecalibration().fit(y, Poisson(np.full(20_000, 2.0)), folds=0)(Poisson([2.0]))
    for value in range(8):
        assert found.cdf(np.array([value]))[0] == pytest.approx(np.mean(y <= value), abs=0.01)
