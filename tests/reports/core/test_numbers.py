import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, Categorical, EqualMass, ExactTest, Sweep
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.evidence import KeyMeasure, gather, number_of


@pytest.fixture
def problem(rng):
    p = rng.random(150)
    return ClassProblem((rng.random(150) < p) * 1, Categorical(p), None, 99, np.random.SeedSequence(0), None)


def measured(problem, estimator, *, resampled=True):
    pool = gather(problem, {"x": estimator}, ()).pool if resampled else None
    return number_of(problem, KeyMeasure("Error", "what it means", estimator, "fraction", "x"), pool)


def test_an_error_has_an_interval_a_band_and_a_test(problem):
    found = measured(problem, problem.error)
    assert found.interval.low <= found.value <= found.interval.high
    plain = ExactTest(problem.error, 99)(problem.targets, problem.predictions, rng=0)
    assert (found.null_band, found.pvalue) == (plain.null_band(), plain.pvalue)


def test_scores_are_tested_on_both_sides(problem):
    found = measured(problem, Brier())
    assert found.pvalue == problem.test(Brier(), two_sided=True).pvalue
    assert found.interval == Brier()(problem.targets, problem.predictions).confidence_interval()


def test_what_is_not_resampled_has_no_band(problem):
    found = measured(problem, SKCE(), resampled=False)
    assert (found.pvalue, found.null_band) == (None, None)
    assert found.interval is not None
    assert found.estimator == repr(SKCE()(problem.targets, problem.predictions).estimator)
    assert measured(problem, ECE(EqualMass(5)), resampled=False).interval is not None


def test_a_number_without_an_interval_says_why(problem):
    found = measured(problem, ECE(Sweep()), resampled=False)
    assert found.interval is None
    assert "the bins depend on what happened" in found.withheld
