from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chi2, norm, pearson3

from calibrant import SKCE, Categorical
from calibrant._validate import InputError
from calibrant.inference import GammaTest, SpectralTest
from calibrant.inference.kernel_tests.asymptotic import _cube, _probed_cube, pearson_tail
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Exponential, Gaussian

UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


@pytest.mark.parametrize("skewness", [0.01, 0.3, 1.0, 2.0, 8**0.5])
def test_the_tail_against_scipy(skewness):
    for z in (-0.6, 0.0, 0.7, 3.0, 12.0):
        assert pearson_tail(z, skewness) == pytest.approx(pearson3.sf(z, skewness), rel=1e-9)


def test_the_tail_at_its_limits():
    assert pearson_tail(1.3, 0.0) == pearson_tail(1.3, -2.0) == pytest.approx(norm.sf(1.3), rel=1e-12)
    assert pearson_tail(1.3, 1.001e-3) == pytest.approx(norm.sf(1.3), rel=1e-3)
    assert pearson_tail(1.3, 99.0) == pearson_tail(1.3, 8**0.5)
    assert pearson_tail(-5.0, 1.0) == 1  # below the least value of the gamma law


def test_one_eigenvalue_is_nearly_chi_square():
    """Constant predictions of two classes: ``H = r r'``. Only the diagonal, of share 1/n, is counted differently."""
    y, p = np.r_[np.ones(330, int), np.zeros(670, int)], np.full(1000, 0.36)
    r = y - p
    expected = chi2.sf((r.sum() ** 2 - r @ r) / 999 / (r @ r / 1000) + 1, 1)
    assert GammaTest()(y, p).pvalue == pytest.approx(expected, rel=0.02)


def test_the_cumulants_are_those_of_resamples(rng):
    """Variance: without bias at any n. Third cumulant: its leading term."""
    predictions = Categorical(rng.dirichlet(np.ones(3), 60))
    statistics, variances, thirds = [], [], []
    for y in predictions.sample(rng, 1000):
        matrix = KernelMatrix.of(SKCE(Exponential(0.5)), y, predictions, None)
        statistics.append(60 * matrix.unbiased)
        variances.append(2 * float(matrix.moments.sum_of_squares) / 59**2)
        thirds.append(8 * _cube(matrix) / 59**3)
    drawn = np.array(statistics)
    assert abs(drawn.mean()) < 4 * drawn.std() / 1000**0.5
    squares, cubes = (drawn - drawn.mean()) ** 2, (drawn - drawn.mean()) ** 3
    assert abs(np.mean(variances) - squares.mean()) < 4 * squares.std() / 1000**0.5
    assert abs(np.mean(thirds) - cubes.mean()) < 4 * cubes.std() / 1000**0.5


def test_the_trace_by_its_definition(rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 9))
    matrix = KernelMatrix.of(SKCE(Exponential(0.5)), rng.integers(0, 3, 9), predictions, None)
    h, rows = matrix.dense, range(9)
    triples = [(i, j, k) for i in rows for j in rows for k in rows if i != j != k != i]
    assert _cube(matrix) == pytest.approx(sum(h[i, j] * h[j, k] * h[k, i] for i, j, k in triples), rel=1e-10)


@pytest.mark.parametrize(("k", "tolerance"), [(2, 1e-3), (4, 0.02)])
def test_the_trace_by_random_vectors(k, tolerance, rng):
    predictions = Categorical(rng.dirichlet(np.ones(k), 700))
    matrix = KernelMatrix.of(SKCE(), predictions.sample(rng, 1)[0], predictions, None)
    exact = _cube(matrix)
    for seed in range(5):
        assert _probed_cube(matrix, 16, seed) == pytest.approx(exact, rel=tolerance)


def test_random_vectors_without_bias(rng):
    """Few vectors leave much to Hutchinson's mean; over many seeds it is the trace."""
    predictions = Categorical(rng.dirichlet(np.ones(5), 60))
    matrix = KernelMatrix.of(SKCE(Exponential(0.05)), predictions.sample(rng, 1)[0], predictions, None)
    values = np.array([_probed_cube(matrix, 2, seed) for seed in range(400)])
    assert abs(values.mean() - _cube(matrix)) < 4 * values.std() / 20


def test_beyond_a_thousand_rows_the_answer_is_that_of_the_spectrum(rng):
    p = rng.random(2500)
    y = (rng.random(2500) < p + 0.04 * np.sin(9 * p)).astype(int)
    assert GammaTest()(y, p).pvalue == pytest.approx(SpectralTest()(y, p).pvalue, rel=0.15)


@pytest.mark.parametrize("name", ["binary", "classes", "normal-1", "normal-10"])
@pytest.mark.parametrize("n", [16, 64])
def test_level(name, n, rejections, bounds):
    low, high = bounds(200)
    test = GammaTest(SKCE() if "normal" not in name else UNIT)
    assert low <= rejections(test, name, n, 200) <= high


def test_same_seed_same_digits_whatever_the_workers(rng):
    p, y = rng.random(1200), rng.integers(0, 2, 1200)
    first, other = (GammaTest()(y, p, rng=seed) for seed in (5, 6))
    with ThreadPoolExecutor(2) as pool:
        assert GammaTest()(y, p, rng=5, engine=pool) == first
    assert first.pvalue != other.pvalue


def test_degenerate_input(degenerate):
    if len(degenerate[0]) == 2:
        with pytest.raises(
            InputError, match=r"has no level here.*all 2 rows.*chance of 0.42.*use ExactTest\(SKCE\(\)\)"
        ):
            GammaTest()(*degenerate)
        return
    assert 0 <= GammaTest()(*degenerate).pvalue <= 1


def test_two_rows_are_one_normal_pair():
    """``n U = 2 h``, with standard deviation ``2 |h|``, and no triangle to be skewed."""
    y, p = np.array([1, 0]), Categorical([0.3, 0.4])
    matrix = KernelMatrix.of(SKCE(), y, p, None)
    assert GammaTest().outcome(matrix, None, None).pvalue == pytest.approx(norm.sf(-1), rel=1e-12)


def test_no_residuals_no_evidence():
    result = GammaTest()([0, 1, 1], [0.0, 1.0, 1.0])
    assert (result.pvalue, result.statistic) == (1, 0)
    assert "there is nothing to test" in result.notes[0]


def test_settings_are_checked():
    with pytest.raises(InputError, match="probes must be a whole number of at least 1; got 0"):
        GammaTest(probes=0)


def test_the_pvalue_from_the_matrix(rng):
    """All three cumulants entry by entry, at few rows, where n - 1 is not n."""
    predictions = Categorical(rng.dirichlet(np.ones(3), 12))
    y = rng.integers(0, 3, 12)
    h = KernelMatrix.of(UNIT, y, predictions, None).dense
    bare = h - np.diag(np.diag(h))
    variance, third = 2 * (bare**2).sum() / 11**2, 8 * np.trace(bare @ bare @ bare) / 11**3
    found = GammaTest(UNIT)(y, predictions)
    assert found.statistic == pytest.approx(bare.sum() / 11, rel=1e-10)
    expected = pearson3.sf(found.statistic / variance**0.5, third / variance**1.5)
    assert found.pvalue == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "is_exact"), [(1024, True), (1025, False)])
def test_the_trace_is_drawn_beyond_1024_rows(n, is_exact):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p) * 1
    assert (len({GammaTest(SKCE(Exponential(0.1)))(y, p, rng=seed).pvalue for seed in range(2)}) == 1) == is_exact
