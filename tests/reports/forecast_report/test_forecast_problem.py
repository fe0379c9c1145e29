import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal, PITError, Poisson
from calibrant.estimators import PIT
from calibrant.reports.core.evidence import gather
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem, coordinate_pit, spread_of


def problem(y, predictions):
    return ForecastProblem(predictions.as_targets(y), predictions, None, 99, np.random.SeedSequence(0), None)


def test_kinds(rng):
    assert problem(rng.normal(size=5), Normal(np.zeros(5), 1.0)).kind == "numbers"
    assert problem([1, 2], Poisson([1.0, 2.0])).kind == "counts"
    assert problem(rng.normal(size=(5, 2)), MultivariateNormal(np.zeros((5, 2)), 1.0)).kind == "vectors of 2"


def test_pit_values_are_tested_as_uniform_numbers(rng):
    y, predictions = rng.normal(size=60), Normal(np.zeros(60), 1.3)
    made = problem(y, predictions)
    assert made.pit.targets == pytest.approx(PIT()(y, predictions))
    result = made.pit.test(made.error)
    assert result.statistic == pytest.approx(PITError("kuiper")(y, predictions).value, rel=1e-12)


def test_means_are_the_promise_and_what_was_held(rng):
    y = rng.normal(size=500)
    predicted, seen = problem(y, Normal(np.zeros(500), 0.5)).means()
    assert predicted == 0.9
    assert seen == pytest.approx((np.abs(y) < 0.5 * 1.6448536).mean(), abs=1e-12)


def test_rows_keep_their_pit_values(rng):
    """Random PIT values of counts are not drawn anew for a slice."""
    rate = rng.uniform(1, 5, 40)
    made = problem(rng.poisson(rate), Poisson(rate))
    rows = np.array([7, 3])
    assert made.rows(rows).pit.targets.tolist() == made.pit.targets[rows].tolist()


def test_a_perfect_ensemble_raises_no_alarm():
    """Of 100 data sets of 2,000 rows with five members; resamples from the members would find fault with each."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        values = rng.normal(size=(2000, 6))
        made = problem(values[:, 0], Ensemble(values[:, 1:]))
        alarms += made.pit.test(made.error).pvalue <= 0.05
    assert alarms <= 14  # 99.9 % of a binomial distribution with mean 5


def test_spread(rng):
    assert spread_of(problem([0.0, 1.0], Normal([0.0, 0.0], [1.0, 2.0]))).tolist() == [1, 2]
    assert spread_of(problem([0.0, 1.0], Normal([0.0, 0.0], 1.0))) is None


def test_coordinates_have_pit_values_of_their_own(rng):
    y, predictions = rng.normal(size=(30, 2)), MultivariateNormal(np.zeros((30, 2)), 1.0)
    pit = PIT()(y, predictions)
    parts = coordinate_pit(problem(y, predictions))
    assert [part.targets.tolist() for part in parts] == pit.T.tolist()


def test_pit_values_of_counts_are_tested_as_they_are_resampled(rng):
    """The digits of the pool behind a report, of all rows and of some."""
    predictions = Poisson(rng.uniform(0.1, 2, 60))
    counts = problem(predictions.sample(rng, 1)[0], predictions)
    for pit in (counts.pit, counts.rows(np.arange(5, 40)).pit):
        test = pit.test(pit.error)
        pool = gather(pit, {"error": pit.error}, (), resampled_from=pit.resampled_from).pool
        assert (test.statistic, test.pvalue) == (pool.observed("error"), pool.pvalue("error"))
        np.testing.assert_array_equal(test.null_distribution, pool.null("error"))
