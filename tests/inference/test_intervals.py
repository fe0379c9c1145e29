import numpy as np
import pytest
from scipy.stats import binom

from calibrant import (
    CRPS,
    ECE,
    KCE,
    KDE,
    SKCE,
    Bootstrap,
    Brier,
    DebiasedECE,
    Normal,
    StudentT,
    Sweep,
    Variational,
)
from calibrant._validate import InputError
from calibrant.estimators import ICI, UCME, BaseEstimator, CalibrationSlope
from calibrant.inference import WithInterval
from calibrant.results import Estimate


def test_bootstrap_of_a_mean_agrees_with_its_standard_error(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    plain, resampled = Brier()(y, p), Bootstrap(Brier(), n_resamples=2000)(y, p)
    assert resampled.value == plain.value
    assert resampled.standard_error == pytest.approx(plain.standard_error, rel=0.1)
    assert tuple(resampled.interval) == pytest.approx(
        tuple(plain.confidence_interval()), abs=0.15 * 4 * plain.standard_error
    )


def test_the_bootstrap_covers_a_score_of_rare_events(rng):
    """Twenty events in 1,000 rows; the reflected interval covered 90 %."""
    covered = 0
    for seed in range(200):
        p = rng.beta(1, 49, 1000)
        y = (rng.random(1000) < p).astype(int)
        covered += 1 / 50 - 2 / (50 * 51) in Bootstrap(Brier(), n_resamples=99)(y, p, rng=seed).interval
    assert covered >= binom.ppf(0.001, 200, 0.95)


@pytest.mark.parametrize(
    "estimator", [ECE(), DebiasedECE(), ECE(Sweep()), SKCE(), KCE(), UCME(), KDE(), ICI(), Variational()], ids=repr
)
def test_errors_that_resampling_does_not_suit_are_refused(estimator):
    """Of calibrated models the whole interval was negative in up to half of the data sets."""
    name = type(estimator).__name__
    with pytest.raises(
        InputError, match=rf"must suit resampling of rows, and {name} does not: .* Leave out the bootstrap"
    ):
        Bootstrap(estimator)


def test_the_best_interval_there_is(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    assert WithInterval(ECE())(y, p).interval == ECE()(y, p).confidence_interval()
    assert WithInterval(CalibrationSlope())(y, p).interval == CalibrationSlope()(y, p).confidence_interval()
    for estimator in (ECE(Sweep()), ICI()):
        found = WithInterval(estimator)(y, p)
        assert found.value == estimator(y, p).value
        assert not found.has_interval
        assert found.withheld

    def mean_score(targets, predictions):
        return float(np.mean(predictions.probs))

    assert WithInterval(mean_score, 99)(y, p, rng=0).interval == Bootstrap(mean_score, 99)(y, p, rng=0).interval


def test_what_does_not_vary_or_is_infinite_has_no_interval(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    constant = Bootstrap(lambda targets, predictions: 0.5, 99)(y, p)
    assert "same value" in constant.withheld
    assert constant.interval is None
    infinite = Bootstrap(lambda targets, predictions: float("inf") if targets[0] else 0.1, 99)(y, p)
    assert "no finite value" in infinite.withheld


def test_levels_nest(rng):
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    narrow, wide = (Bootstrap(Brier(), 199, level)(y, p).interval for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_same_seed_same_interval(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    first, second, other = (Bootstrap(Brier(), 99)(y, p, rng=seed).standard_error for seed in (1, 1, 2))
    assert first == second != other


def test_weights_and_foreign_estimators(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)

    def doubled(targets, predictions, sample_weight):
        value = 2 * np.average((targets - predictions.probs) ** 2, weights=sample_weight)
        return Estimate("doubled", value, len(targets), doubled)

    w = rng.random(50)
    ours, theirs = (Bootstrap(each, 99)(y, p, sample_weight=w) for each in (Brier(), doubled))
    assert theirs.standard_error == pytest.approx(2 * ours.standard_error, rel=1e-10)
    assert 2 * ours.interval.low <= theirs.interval.low < theirs.interval.high <= 2 * ours.interval.high


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": 3}, "estimator must be an estimator"),
        ({"n_resamples": 1}, "n_resamples must be a whole number of at least 2"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Bootstrap(**{"estimator": Brier(), **settings})


def test_resampling_does_not_narrow_what_the_estimate_allows_for(rng):
    """Rows drawn again show no loss that was not seen: 362 of 400 intervals of the CRPS of heavy tails held."""
    y = rng.standard_t(3, 100)
    forecast = StudentT(df=np.full(100, 3.0), loc=np.zeros(100), scale=np.ones(100))
    own, resampled = CRPS()(y, forecast).confidence_interval(), Bootstrap(CRPS(), 99)(y, forecast).interval
    assert resampled.low <= own.low
    assert resampled.high >= own.high


def test_what_an_estimator_withholds_resampling_does_not_give_back(rng):
    """Twenty rows do not show how far losses go, however often they are drawn: 363 of 400 intervals held."""
    y = rng.normal(size=20)
    found = Bootstrap(CRPS(), 99)(y, Normal(np.zeros(20), 1.0))
    assert not found.has_interval
    assert "50 or more have an interval" in found.withheld


def test_an_estimator_without_limits_is_resampled(rng):
    class Share(BaseEstimator):
        resampling = None

        def estimate(self, targets, predictions, weights):
            return Estimate("share", float(np.mean(targets)), len(targets), self)

    y, p = rng.integers(0, 2, 50), rng.random(50)
    found = WithInterval(Share(), 99)(y, p, rng=0)
    assert found.interval == Bootstrap(Share(), 99)(y, p, rng=0).interval
    assert found.interval.low < y.mean() < found.interval.high
