import numpy as np

from calibrant import SKCE, Categorical
from calibrant.estimators import RandomFeatureSKCE
from calibrant.estimators.kernel_errors.random_features import affordable_features, work_of_features
from calibrant.kernels import Exponential, Identity
from calibrant.planning.affordable import (
    KERNEL_WORK,
    ON_A_LINE,
    PAIRS,
    affordable,
    affordable_kernel,
    affordable_resamples,
    work_of,
)
from calibrant.planning.jobs import Load, kernel_work


def test_huge_data_make_do_with_fewer_resamples_but_never_too_few():
    assert affordable(999, 10**4, 10**8, least=199) == 999
    assert affordable(999, 10**6, 10**8, least=199) == 199
    assert affordable(999, 250_000, 10**8, least=199) == 400
    assert affordable(19, 10**9, 10**8, least=199) == 19


def test_kernel_errors_by_pairs():
    assert affordable_kernel(1, PAIRS, is_line=True) is None
    assert affordable_kernel(10**8, PAIRS, is_line=True) == SKCE()
    assert affordable_kernel(22_000, PAIRS, is_line=False) == SKCE()
    assert affordable_kernel(10**6, PAIRS, is_line=False) == SKCE(block=500)
    assert affordable_kernel(10**6, PAIRS, is_line=False, in_blocks=False) is None
    assert affordable_kernel(PAIRS, PAIRS, is_line=False) is None  # blocks of one row


def test_reports_count_random_features_and_lines_too():
    several, two = Categorical(np.full((50, 4), 0.25)), Categorical(np.linspace(0.1, 0.9, 50))
    assert work_of(RandomFeatureSKCE(Exponential(1.0), n_features=32), several) == work_of_features(50, 4, 32)
    assert work_of(SKCE(Exponential(1.0)), two) == ON_A_LINE * kernel_work(Load(50, 2, "binary"))


def test_as_many_random_features_as_the_work_pays_for():
    predictions = Categorical(np.full((1000, 4), 0.25))
    budget = 99 * work_of_features(1000, 4, 100)
    assert affordable_features(Exponential(1.0), Identity(), predictions, 99, budget) == 100


def test_the_report_reads_the_same_numbers():
    from calibrant.reports import evaluation
    from calibrant.reports.core import evidence, problem

    assert (problem.PAIRS, evidence.KERNEL_WORK) == (PAIRS, KERNEL_WORK)
    assert evaluation.affordable_resamples is affordable_resamples
