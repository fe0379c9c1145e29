import numpy as np
import pytest

from calibrant import ECE, EqualMass, EqualWidth, ExactTest, Mixture, Normal, PITError
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import ThresholdError
from calibrant.lenses import Exceeds


def test_it_is_the_binned_error_of_the_thresholds(rng):
    batch = Normal.example(rng, 90)
    y = rng.normal(size=90)
    result = ThresholdError([0.0, 1.0], bins=EqualWidth(5), norm=2)(y, batch)
    assert result.value == ECE(EqualWidth(5), 2, Exceeds((0.0, 1.0)))(y, batch).value
    assert result.name == "ThresholdError"
    assert set(result.table["event"]) == {"> 0", "> 1"}
    chosen = ThresholdError(n_thresholds=3)(y, batch).estimator.thresholds
    assert len(chosen) == 3
    assert ThresholdError(chosen)(y, batch).value == ThresholdError(n_thresholds=3)(y, batch).value


def test_it_conforms_and_finds_errors(rng):
    batch = Normal.example(rng, 300)
    y = batch.sample(rng, 1)[0]
    check_estimator(ThresholdError(), y, batch)
    check_estimator(ThresholdError(0.5, bins=EqualMass(4)), y, batch)
    assert ExactTest(ThresholdError(), n_resamples=99)(y, batch).pvalue > 0.05
    assert ExactTest(ThresholdError(), n_resamples=99)(y, Normal(batch.loc, 2 * batch.scale)).pvalue == 0.01


def test_it_sees_what_uniform_levels_hide(rng):
    """The unfocused forecaster of Gneiting, Balabdaoui and Raftery (2007): uniform levels, and probabilities that are off."""
    y = rng.normal(size=600)
    astray = 2.0 * rng.choice([-1.0, 1.0], 600)
    forecast = Mixture([Normal(np.zeros(600), 1.0), Normal(astray, 1.0)])
    assert ExactTest(PITError(), n_resamples=99)(y, forecast).pvalue > 0.05
    assert ExactTest(ThresholdError(), n_resamples=99)(y, forecast).pvalue == 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ThresholdError([np.inf]), "thresholds has NaN or infinite values"),
        (lambda: ThresholdError(n_thresholds=0), "n_thresholds must be a whole number of at least 1"),
        (lambda: ThresholdError(bins=5), "bins must be a binning"),
        (lambda: ThresholdError(norm=0), "norm must be a number of at least 1"),
        (lambda: ThresholdError()([0, 1], [0.2, 0.4]), "ThresholdError needs quantiles, which Categorical"),
        (lambda: ThresholdError(0.5)([0, 1], [0.2, 0.4]), "need a distribution function, which Categorical"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
