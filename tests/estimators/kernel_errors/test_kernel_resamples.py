import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Laplace, Normal
from calibrant.estimators.kernel_errors.kernel_resamples import work_of_numbers, work_of_redraw
from calibrant.kernels import Exponential, Matern


def test_two_classes_cost_no_pairs_where_the_kernel_can_be_sorted():
    two, three = Categorical(np.full(100, 0.5)), Categorical(np.full((100, 3), 1 / 3))
    assert work_of_redraw(Exponential(1.0), two, 1) == 2000
    assert work_of_redraw(Exponential(1.0), three, 3) == 100**2 * 3
    assert work_of_redraw(Matern(1.5, 1.0), three, 3) == 100**2 * 3


@pytest.mark.parametrize("n", [10, 1000])
def test_numbers_cost_pairs_and_families_differ(n):
    zeros = np.zeros(n)
    assert work_of_redraw(Exponential(1.0), Normal(zeros, 1.0), 2) == work_of_numbers(n) == 50 * n**2
    assert work_of_redraw(Exponential(1.0), Laplace(zeros, 1.0), 2) == 200 * work_of_numbers(n)
    assert work_of_redraw(Exponential(1.0), Ensemble(np.zeros((n, 7, 2))), 2) == 200 * n**2 * 7
