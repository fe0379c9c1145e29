import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, Categorical, EqualMass
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.numbers import normal_interval, number_of


@pytest.fixture
def problem(rng):
    p = rng.random(150)
    return ClassProblem((rng.random(150) < p) * 1, Categorical(p), None, 99, np.random.SeedSequence(0), None)


def test_an_error_has_an_interval_a_band_and_a_test(problem):
    found = number_of(problem, "Error", "what it means", ECE(EqualMass(15), lens=problem.lens), "percent")
    assert found.interval.low <= found.value <= found.interval.high
    assert found.null_band.low < found.null_band.high
    assert 0 < found.pvalue <= 1


def test_scores_are_tested_on_both_sides(problem):
    found = number_of(problem, "Score", "", Brier(), "number")
    assert found.pvalue == problem.test(Brier(), two_sided=True).pvalue
    assert found.interval.low == pytest.approx(normal_interval(Brier()(problem.targets, problem.predictions)).low)


def test_the_kernel_error_of_blocks_has_no_test(problem):
    assert number_of(problem, "Kernel", "", SKCE(), "number").pvalue is not None
    assert number_of(problem, "Kernel", "", SKCE(block=10), "number").pvalue is None
