from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom, chi2

from calibrant import SKCE, Categorical
from calibrant._validate import InputError
from calibrant.inference import SpectralTest
from calibrant.inference.kernel_tests import asymptotic
from calibrant.inference.kernel_tests.asymptotic import _without_negative
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Exponential, Gaussian, Kernel

UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def test_one_eigenvalue_is_chi_square():
    """Constant predictions of two classes: ``H = r r'``, whose only eigenvalue is its trace."""
    y, p = np.r_[np.ones(30, int), np.zeros(70, int)], np.full(100, 0.4)
    r = 2**0.5 * (y - p)
    eigenvalue, statistic = r @ r / 100, (r.sum() ** 2 - r @ r) / 99
    result = SpectralTest()(y, p)
    assert result.statistic == pytest.approx(statistic, rel=1e-10)
    assert result.pvalue == pytest.approx(chi2.sf(statistic / eigenvalue + 1, 1), rel=1e-9)


def test_two_equal_eigenvalues_are_exponential():
    """Constant uniform predictions of three classes, each as frequent: the covariance is ``1/3 (I - 1/3)``."""
    y = np.repeat([0, 1, 2], 30)
    result = SpectralTest()(y, np.full((90, 3), 1 / 3))
    assert result.statistic == pytest.approx(-90 / 89 * 2 / 3, rel=1e-10)  # the sum of all residuals is zero
    expected = np.exp(-max(result.statistic / (1 / 3) + 2, 0) / 2)
    assert result.pvalue == pytest.approx(expected, rel=1e-9)


def test_the_tail_against_simulation_of_the_limit(rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 150))
    y = np.where(rng.random(150) < 0.1, 0, predictions.sample(rng, 1)[0])
    h = KernelMatrix.of(SKCE(Exponential(0.5)), y, predictions, None).dense
    weights = np.linalg.eigvalsh(h / 150)
    limit = (rng.standard_normal((20_000, 150)) ** 2 - 1) @ weights
    result = SpectralTest(SKCE(Exponential(0.5)))(y, predictions)
    low, high = binom.interval(0.999, 20_000, result.pvalue)
    assert low <= np.count_nonzero(limit >= result.statistic) <= high


@pytest.mark.parametrize(("k", "tolerance"), [(2, 1e-6), (4, 1e-3)])
def test_lanczos_against_all_eigenvalues(k, tolerance, rng, monkeypatch):
    predictions = Categorical(rng.dirichlet(np.ones(k), 600))
    y = predictions.sample(rng, 1)[0]
    everything = SpectralTest()(y, predictions)
    monkeypatch.setattr(asymptotic, "SPECTRUM", 0)
    largest = SpectralTest()(y, predictions)
    assert largest.pvalue == pytest.approx(everything.pvalue, rel=tolerance)
    assert largest.statistic == everything.statistic
    assert "of the variance; they count as equal" in largest.notes[0]
    coarse = SpectralTest(eigenvalues=3)(y, predictions)
    assert coarse.pvalue == pytest.approx(everything.pvalue, rel=0.05)


def test_the_rest_keeps_trace_and_squares(rng, monkeypatch):
    predictions = Categorical(rng.dirichlet(np.ones(4), 200))
    matrix = KernelMatrix.of(SKCE(Exponential(0.2)), rng.integers(0, 4, 200), predictions, None)
    weights, degrees, _ = SpectralTest(eigenvalues=5)._largest(matrix, None)
    values = np.linalg.eigvalsh(matrix.dense / 200)
    assert sorted(weights[:5]) == pytest.approx(values[-5:], rel=1e-9)
    assert weights @ degrees == pytest.approx(values.sum(), rel=1e-10)
    assert weights**2 @ degrees == pytest.approx((values**2).sum(), rel=1e-10)


def test_lanczos_asks_for_at_most_half_of_the_eigenvalues(rng, monkeypatch):
    monkeypatch.setattr(asymptotic, "SPECTRUM", 0)
    result = SpectralTest(eigenvalues=100)(rng.integers(0, 2, 40), rng.random(40))
    assert "eigenvalues beyond the first 20 hold" in result.notes[0]


def test_lanczos_of_one_eigenvalue_leaves_no_rest():
    y, p = np.r_[np.ones(700, int), np.zeros(800, int)], np.full(1500, 0.48)
    result = SpectralTest()(y, p)
    r = y - p
    assert result.notes == ()
    assert result.pvalue == pytest.approx(chi2.sf((r.sum() ** 2 - r @ r) / 1499 / (r @ r / 1500) + 1, 1), rel=1e-6)


@pytest.mark.parametrize("name", ["binary", "classes", "normal-1"])
def test_level(name, rejections, bounds):
    low, high = bounds(150)
    test = SpectralTest(SKCE() if "normal" not in name else UNIT)
    assert low <= rejections(test, name, 100, 150) <= high


def test_sixteen_rows_in_ten_dimensions_are_too_few(rejections):
    """The diagonal is most of the matrix there, and its spectrum that of another law: nothing is rejected."""
    assert rejections(SpectralTest(UNIT), "normal-10", 16, 100) == 0


def test_same_seed_same_digits_whatever_the_workers(rng):
    p, y = rng.random(1200), rng.integers(0, 2, 1200)
    with ThreadPoolExecutor(2) as pool:
        assert SpectralTest()(y, p, rng=5, engine=pool) == SpectralTest()(y, p, rng=5)


@dataclass(frozen=True)
class Indefinite(Kernel):
    def __call__(self, x, y):
        return 1 - 3 * np.abs(x[:, :1] - y[:, :1].T)


def test_a_kernel_that_is_none_is_noted(rng):
    result = SpectralTest(SKCE(Indefinite()))(rng.integers(0, 2, 50), rng.random(50))
    assert "the kernel matrix is not positive semi-definite: eigenvalues down to -" in result.notes[0]
    assert 0 <= result.pvalue <= 1


def test_degenerate_input(degenerate):
    if len(degenerate[0]) == 2:
        with pytest.raises(
            InputError, match=r"has no level here.*all 2 rows.*chance of 0.42.*use ExactTest\(SKCE\(\)\)"
        ):
            SpectralTest()(*degenerate)
        return
    assert 0 <= SpectralTest()(*degenerate).pvalue <= 1


def test_no_residuals_no_evidence():
    result = SpectralTest()([0, 1, 1], [0.0, 1.0, 1.0])
    assert (result.pvalue, result.statistic) == (1, 0)
    assert result.notes == ("all residuals are zero: there is nothing to test",)


def test_settings_are_checked():
    with pytest.raises(InputError, match="eigenvalues must be a whole number of at least 1; got 0"):
        SpectralTest(eigenvalues=0)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_negative_eigenvalues_are_told_by_their_share(size):
    """Of the largest, whatever the unit of the kernel."""
    rounding, told = (size * np.array([least, 0.5, 1.0]) for least in (-1e-15, -0.01))
    assert _without_negative(rounding)[1] == ()
    values, (note,) = _without_negative(told)
    assert values.tolist() == [0.0, 0.5 * size, size]
    assert "not positive semi-definite" in note
