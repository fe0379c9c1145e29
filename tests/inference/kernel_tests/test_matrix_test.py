import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from calibrant import SKCE
from calibrant._validate import InputError
from calibrant.inference import BootstrapTest, GammaTest, MatrixTest, Outcome, SpectralTest, WildBootstrapTest
from calibrant.inference.kernel_tests import kernel_matrix
from calibrant.kernels import Exponential

TESTS = [BootstrapTest(), WildBootstrapTest(), SpectralTest(), GammaTest()]


@dataclass(frozen=True)
class Trace(MatrixTest):
    def outcome(self, matrix, rng, engine):
        return Outcome(float(matrix.moments.diagonal.sum()), 0.25, np.array([float(rng)]), ("a note",))


def test_the_call_brings_the_parts_together(rng):
    p, y = rng.random(30), rng.integers(0, 2, 30)
    result = Trace(SKCE(Exponential(0.5)))(y, p, rng=7)
    assert result.statistic == pytest.approx(2 * ((y - p) ** 2).sum(), rel=1e-12)
    assert (result.pvalue, result.n, result.notes) == (0.25, 30, ("a note",))
    assert result.null_distribution.tolist() == [7.0]
    assert result.estimate == SKCE(Exponential(0.5))(y, p)
    assert result.test == Trace(SKCE(Exponential(0.5)))


def test_ranks_by_hand():
    null = np.arange(1.0, 10.0)
    assert [Outcome.ranked(x, null).pvalue for x in (0.5, 1.0, 5.5, 9.0, 9.5)] == [1.0, 1.0, 0.5, 0.2, 0.1]
    assert Outcome.ranked(9 + 1e-13, null).pvalue == 0.2  # rounding is a tie
    with pytest.raises(InputError, match="the statistic is not a number for 1 of 10"):
        Outcome.ranked(np.nan, null)


@pytest.mark.parametrize("test", TESTS, ids=lambda t: type(t).__name__)
def test_rows_without_weight_do_not_count(test, rng):
    p, y = rng.random(60), rng.integers(0, 2, 60)
    w = np.r_[np.full(40, 2.0), np.zeros(20)]
    assert test(y, p, sample_weight=w).pvalue == pytest.approx(test(y[:40], p[:40]).pvalue, rel=1e-9)


@pytest.mark.parametrize("test", TESTS, ids=lambda t: type(t).__name__)
def test_errors_are_found(test, rng):
    p = rng.random(500)
    y = (rng.random(500) < 0.25 + p / 2).astype(int)
    assert test(y, p).pvalue <= 0.001


@pytest.mark.parametrize("test", TESTS, ids=lambda t: type(t).__name__)
def test_tests_are_values(test):
    assert pickle.loads(pickle.dumps(test)) == test == type(test)()


@pytest.mark.parametrize("estimator", [SKCE(unbiased=False), SKCE(block=5), Exponential(), None])
def test_other_estimators_are_refused(estimator):
    with pytest.raises(InputError, match="estimator must be an unbiased SKCE without blocks; got"):
        GammaTest(estimator)


def test_one_row():
    with pytest.raises(InputError, match="at least two rows"):
        SpectralTest()([1], [0.4])


@pytest.mark.parametrize(
    "test", [GammaTest(SKCE(Exponential(0.3))), SpectralTest(SKCE(Exponential(0.3)), eigenvalues=3)]
)
def test_sums_and_products_are_those_of_an_engine(test, rng, travelling, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "STORED", 0)
    p = rng.dirichlet(np.ones(3), 1100)
    y = rng.integers(0, 3, 1100)
    there, alone = test(y, p, engine=travelling), test(y, p)
    assert (there.statistic, there.pvalue, there.notes) == (alone.statistic, alone.pvalue, alone.notes)
    assert travelling.maps > 5, "the estimate, the sums, and products"


@pytest.mark.parametrize("test", [BootstrapTest(n_resamples=29), WildBootstrapTest(n_resamples=29)])
def test_resamples_are_those_of_an_engine(test, rng, travelling):
    p, y = rng.random(60), rng.integers(0, 2, 60)
    there, alone = test(y, p, engine=travelling), test(y, p)
    assert there.null_distribution.tolist() == alone.null_distribution.tolist()
    assert travelling.maps == 3
