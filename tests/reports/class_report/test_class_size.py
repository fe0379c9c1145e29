import numpy as np
import pytest

from calibrant import Categorical
from calibrant.reports.class_report.class_outline import is_small, measures_of, tails_to_test
from calibrant.reports.core.evidence import gather, number_of
from calibrant.reports.core.problem import slicings_of


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 0)


def small(problem, by=None):
    measure = measures_of(problem)[0]
    evidence = gather(problem, {"error": problem.error}, slicings_of(problem, by or {}))
    return is_small(problem, evidence, number_of(problem, measure, evidence.pool))


def test_a_small_error_of_many_rows_and_a_large_one(rng, problem_of):
    p = rng.uniform(0.2, 0.8, 100_000)
    u = rng.random(100_000)
    assert small(problem_of((u < p - 0.004) * 1, Categorical(p)))
    assert not small(problem_of((u < p - 0.03) * 1, Categorical(p)))
    assert not small(problem_of((u < p - 0.004)[:2000] * 1, Categorical(p[:2000])))  # few rows cannot tell


def test_few_claims_at_the_top_that_fail_are_never_small(rng, problem_of):
    """0.2 % of the rows claim 99 %, and half of them come true: too few to move the mean error."""
    p = np.r_[rng.uniform(0.2, 0.8, 100_000), np.full(200, 0.99)]
    y = np.r_[(rng.random(100_000) < p[:-200]) * 1, np.repeat([0, 1], 100)]
    problem = problem_of(y, Categorical(p))
    measure, tested = measures_of(problem)[0], {"error": problem.error, **tails_to_test(problem)}
    evidence = gather(problem, tested, ())
    assert small(problem)  # as long as nobody looks there
    assert not is_small(problem, evidence, number_of(problem, measure, evidence.pool))


def test_of_a_rare_event_little_is_much(rng, problem_of):
    p = rng.beta(1, 1000, 50_000)
    assert not small(problem_of((rng.random(50_000) < 3 * p) * 1, Categorical(p)))


def test_what_was_called_impossible_is_never_small(rng, problem_of):
    p = np.r_[rng.uniform(0.2, 0.8, 100_000), 0.0]
    y = np.r_[(rng.random(100_000) < p[:-1]) * 1, 1]
    assert not small(problem_of(y, Categorical(p)))


def test_a_slice_that_is_far_off_is_not_small(rng, problem_of):
    p = rng.uniform(0.2, 0.8, 100_000)
    site = np.where(np.arange(100_000) < 2000, "west", "east")
    y = (rng.random(100_000) < p - np.where(site == "west", 0.15, 0.0)) * 1
    assert not small(problem_of(y, Categorical(p)), {"site": site})
