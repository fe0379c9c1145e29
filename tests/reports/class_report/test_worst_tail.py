import numpy as np
import pytest

from calibrant import Categorical, ClassWise, TopLabel
from calibrant.reports.class_report.class_problem import WorstTail


@pytest.mark.parametrize("is_upper", [True, False])
def test_the_tail_that_is_off(is_upper, problem_of):
    f = np.r_[np.full(900, 0.5), np.full(100, 0.95)]
    y = np.r_[np.arange(900) % 2, np.repeat([1, 0], 50)]
    if not is_upper:
        f, y = 1 - f, 1 - y
    problem = problem_of(y, Categorical(f))
    tail = WorstTail.of(problem, problem.lens)
    assert (tail.is_upper, tail.share) == (is_upper, 0.1)
    assert (tail.predicted, tail.observed) == pytest.approx((0.95, 0.5) if is_upper else (0.05, 0.5))
    assert (tail.z > 0) == is_upper
    assert tail.holds(f).sum() == 100


def test_several_classes(rng, problem_of):
    p = rng.dirichlet(np.ones(3), 400)
    problem = problem_of(rng.integers(0, 3, 400), Categorical(p))
    assert abs(WorstTail.of(problem, ClassWise()).z) > 3
    assert WorstTail.of(problem, TopLabel()).predicted > 1 / 3
