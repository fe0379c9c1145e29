import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from calibrant import Normal, evaluate
from calibrant.reports.forecast_verdict import leaning


@pytest.mark.parametrize(
    ("shift", "scale", "words"),
    [
        (0.0, 1.0, "These forecasts agree with what happened."),
        (0.6, 1.0, "they are too low."),
        (-0.6, 1.0, "they are too high."),
        (0.0, 2.0, "they are too narrow."),
        (0.0, 0.5, "they are too wide."),
    ],
)
def test_the_way_forecasts_err_is_named(shift, scale, words, rng):
    loc = rng.normal(size=400)
    report = evaluate(loc + shift + scale * rng.normal(size=400), Normal(loc, 1.0), n_resamples=99)
    assert report.verdict.headline.endswith(words)


def test_calibrated_forecasts_raise_few_alarms():
    """At most 5 % of 60 data sets, by its binomial bound."""
    rng, alarms = np.random.default_rng(4), 0
    for _ in range(60):
        loc, scale = rng.normal(size=100), rng.uniform(0.5, 2, 100)
        report = evaluate(loc + scale * rng.normal(size=100), Normal(loc, scale), n_resamples=199)
        alarms += report.verdict.tone != "good"
    assert alarms <= 10  # 99.9 % of a binomial distribution with mean 3


def test_errors_that_cancel(rng):
    u = np.concatenate([rng.uniform(0, 0.4, 500), rng.uniform(0.6, 1, 500)])
    assert leaning(u) == "they are too narrow"
    assert leaning((np.arange(1000) + 0.5) / 1000) == "they are wrong in places, and right on average"


def test_both_ways_are_named_the_worse_one_first():
    z = ndtri((np.arange(1000) + 0.5) / 1000)
    assert leaning(ndtr(0.9 * z + 1)) == "they are too low and too wide"
    assert leaning(ndtr(3 * z - 0.3)) == "they are too narrow and too high"
