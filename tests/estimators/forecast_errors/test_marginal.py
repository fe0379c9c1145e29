import time

import numpy as np
import pytest

from calibrant import Ensemble, ExactTest, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import MarginalError
from calibrant.estimators.forecast_errors.marginal import pooled_thresholds


def test_both_distribution_functions(rng):
    batch = Normal.example(rng, 50)
    y, w = rng.normal(size=50), rng.random(50)
    thresholds = [1.0, -0.5, 0.2]
    result = MarginalError(thresholds)(y, batch, sample_weight=w)
    ordered = np.sort(thresholds)
    predicted = [np.average(batch.cdf(np.full(50, t)), weights=w) for t in ordered]
    observed = [np.average(y <= t, weights=w) for t in ordered]
    assert result.table["threshold"].tolist() == ordered.tolist()
    assert result.table["predicted"] == pytest.approx(predicted)
    assert result.table["observed"] == pytest.approx(observed)
    assert result.value == pytest.approx(np.abs(np.subtract(predicted, observed)).max())
    mean = MarginalError(thresholds, norm=1)(y, batch, sample_weight=w).value
    assert mean == pytest.approx(np.abs(np.subtract(predicted, observed)).mean())


def test_targets_at_a_threshold_lie_below_it(counts):
    result = MarginalError([2.0])([2, 3], counts([0.5, 0.5]))
    assert result.table["observed"].tolist() == [0.5]
    assert result.table["predicted"] == pytest.approx([0.5])


def test_thresholds_share_the_predictions_evenly(rng):
    batch = Normal.example(rng, 2_000)
    thresholds = np.array(pooled_thresholds(batch, 9, MarginalError()))
    shares = [batch.cdf(np.full(2_000, t)).mean() for t in thresholds]
    assert shares == pytest.approx(np.arange(1, 10) / 10, abs=0.01)
    assert pooled_thresholds(Ensemble(np.ones((4, 3))), 9, MarginalError()) == (1.0,)


def test_it_conforms_and_finds_errors(rng):
    batch = Normal.example(rng, 200)
    y = batch.sample(rng, 1)[0]
    for estimator in (MarginalError(), MarginalError([0.0, 1.0], norm=2), MarginalError(n_thresholds=5, norm=1)):
        check_estimator(estimator, y, batch)
    assert ExactTest(MarginalError(), n_resamples=99)(y, batch).pvalue > 0.05
    assert ExactTest(MarginalError(), n_resamples=99)(y, Normal(batch.loc, 2 * batch.scale)).pvalue == 0.01


def test_the_climate_is_marginally_calibrated(rng):
    """Right for all rows together, wrong for each: only other errors see that."""
    y = rng.normal(rng.normal(size=400), 1.0)
    assert ExactTest(MarginalError(), n_resamples=99)(y, Normal(np.zeros(400), np.sqrt(2))).pvalue > 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MarginalError([np.nan]), "thresholds has NaN or infinite values"),
        (lambda: MarginalError([]), "thresholds is empty"),
        (lambda: MarginalError(n_thresholds=0), "n_thresholds must be a whole number of at least 1"),
        (lambda: MarginalError(norm=0.5), "norm must be a number of at least 1, or inf; got 0.5"),
        (lambda: MarginalError()([0, 1], [0.2, 0.4]), "MarginalError needs quantiles, which Categorical"),
        (
            lambda: MarginalError([0.5])([0, 1], [0.2, 0.4]),
            "MarginalError needs a distribution function, which Categorical",
        ),
        (
            lambda: MarginalError()([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0)),
            "MarginalError needs quantiles, which MultivariateNormal",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_large_ensembles_in_about_a_second(rng):
    y, batch = rng.normal(size=14_600), Ensemble(rng.normal(size=(14_600, 50)))
    start = time.perf_counter()
    MarginalError()(y, batch)
    assert time.perf_counter() - start < 15  # a shared machine
