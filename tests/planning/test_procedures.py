import numpy as np
import pytest

from calibrant import ECE, SKCE, AggregatedTest, ExactTest
from calibrant.estimators import RandomFeatureSKCE
from calibrant.inference.exact_tests.exact_test import BUDGET, within_budget
from calibrant.planning.bench import problem
from calibrant.planning.families import FAMILIES, Load, _enough, kernel_work, scales


@pytest.mark.parametrize("work", [1.0, 1e11, 2.1e11, 9.99e12, 1.0000001e15])
def test_a_budget_covers_the_work(work):
    assert max(work, BUDGET) <= _enough(work) <= max(1.1 * work, BUDGET)


def test_the_aggregated_test_takes_what_is_meant():
    load = Load(3000, 5, resamples=999)
    for waves in (0, 64, 256):
        meant = Load(3000, 5, resamples=999, waves=waves)
        test = FAMILIES["aggregated kernel test by waves"].make(meant)
        share = test.budget / scales(load)
        chosen, _ = within_budget(SKCE(), problem(load)[1], test.n_resamples, share)
        if waves:
            assert isinstance(chosen, RandomFeatureSKCE)
            assert chosen.n_features == pytest.approx(waves, rel=0.1)
        else:
            assert chosen == SKCE()


def test_what_is_made():
    load = Load(1000, 3, resamples=199)
    assert FAMILIES["test of the binned error"].make(load).n_resamples == 199
    assert isinstance(FAMILIES["test of the class-wise error"].make(load).estimator, ECE)
    assert FAMILIES["kernel test of all pairs"].make(load) == ExactTest(SKCE(), 199)
    assert FAMILIES["aggregated kernel test of all pairs"].make(load) == AggregatedTest(n_resamples=199)


def test_several_statistics_cost_several_times_one():
    load = Load(1000, 3, resamples=199)
    one, three = (
        FAMILIES[name].terms(load) for name in ("kernel test of all pairs", "aggregated kernel test of all pairs")
    )
    assert np.allclose(three, 3 * np.array(one))
    assert one[-1] == 199 * kernel_work(load)
